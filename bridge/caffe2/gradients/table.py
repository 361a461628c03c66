# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of each operator type, as patterns; `patterns` explains the notation.

Gradients that no pattern expresses are in `makers`.
Follows the gradient makers of caffe2/operators, PyTorch 1.8.1, which were called for each type.
"""

__all__ = ["NO_GRADIENT", "PATTERNS", "UNDEFINED", "UNIMPLEMENTED"]

PATTERNS = {
    # One input, one output.
    "$Gradient i0 g0 > 0": (
        "Abs Acos Asin Atan AveragedLoss Cos Erf IntegralImage LpNorm Normalize Sin SumElements Tan"
    ),
    "$Gradient i0! g0 > 0": "Logit Softsign",
    "$Gradient g0 i0 > 0": "Cosh Cube Expand Gelu ResizeNearest3D Sinh",
    "$Gradient o0 g0 > 0": (
        "Clip Elu HardSigmoid LeakyRelu Reciprocal Relu ReluN Selu Sigmoid Softmax Softplus Tanh "
        "ThresholdedRelu"
    ),
    "$Gradient g0 o0 > 0": "Cbrt Rsqrt",
    "$Gradient i0 o0 g0 > 0": (
        "AveragePool AveragePool1D AveragePool2D AveragePool3D ColwiseMax LRN LpPool MaxPool "
        "MaxPool1D MaxPool2D MaxPool3D Mish RowwiseMax Swish"
    ),
    "$Gradient g0 > 0": "ChannelShuffle CopyRowsToTensor MakeTwoClass PadImage",
    "Negative g0 > 0": "NegateGradient Negative",
    "Mul o0 g0 > 0": "Exp",
    "Div g0 i0! > 0": "Log",
    "Scale g0 > 0": "Scale",
    "Scale{scale=2.0} g0 > g0; Mul g0 i0! > 0": "Sqr",
    "Scale{scale=0.5} g0 > 0; Div d0 o0 > 0": "Sqrt",
    "NanCheck g0 > 0": "NanCheck",
    "ConstantFill{value=0.0} i0 > 0": "ZeroGradient",
    # Two inputs, element by element; several.
    "$Gradient g0 i0 i1 > 0 1": "Add Sub",
    "$Gradient g0 i0 i1 o0 > 0 1": "Div",
    "$Gradient o0 g0 i0 i1 > 0 1": "PRelu",
    "$Gradient o0 g0 i*! > *": "Max Min",
    "$Gradient g0 > *": "Mean",
    "RowMul g0 i1 > 0; Mul g0 i0 > d1+before_aggregate; ReduceTailSum d1+before_aggregate > 1": (
        "RowMul"
    ),
    "SquareRootDivide g0 i1 > 0": "SquareRootDivide",
    # Shapes and devices.
    "ResizeLike g0 i0 > 0": "Flatten FlattenToVec",
    "ExpandDims g0 > 0": "Squeeze",
    "Squeeze g0 > 0": "ExpandDims",
    "$Gradient g0 i1? i2? > 0": "Tile",
    "CopyOnDeviceLike g0 i0 > 0": "Copy",
    "HalfToFloat g0 > 0": "FloatToHalf",
    "FloatToHalf g0 > 0": "HalfToFloat",
    "NHWC2NCHW g0 > 0": "NCHW2NHWC",
    "NCHW2NHWC g0 > 0": "NHWC2NCHW",
    "SpaceToBatch g0 > 0": "BatchToSpace",
    "BatchToSpace g0 > 0": "SpaceToBatch",
    "Im2Col g0 > 0": "Col2Im",
    "Col2Im g0 i0 > 0": "Im2Col",
    "BatchSparseToDense i0 i1 g0 i2 > 2": "BatchDenseToSparse",
    "BatchDenseToSparse i0 i1 g0 > 2": "BatchSparseToDense",
    "Gather g0 i0 > 1": "SparseToDense",
    "$Gradient i0 g0 i3? > 1": "SparseToDenseMask",
    "$Gradient i0 i1 g0 > 0": "BatchGather CosineEmbeddingCriterion CrossEntropy LabelCrossEntropy"
    " RoIAlign RoIAlignRotated",
    "$Gradient i1 g0 > 0": "BatchPermutation BooleanMask",
    # Sums and choices.
    "$Gradient g0 i0 o0 > 0": "ReduceL1 ReduceL2 ReduceMax ReduceMean ReduceMin ReduceSum",
    "$Gradient g0 i0 i1? > 0": (
        "ReduceBackMean ReduceBackSum ReduceFrontMean ReduceFrontSum ResizeNearest UpsampleBilinear"
    ),
    "$Gradient g0 i0 o0 i1? > 0": "ReduceBackMax ReduceFrontMax",
    "Shape i0 > _o0+_dims; $Gradient i1 g0 _o0+_dims > 0": "ReduceFrontWeightedSum",
    # Layers with parameters, normalization.
    "$Gradient i0 i1 g0 > 1 2 0": "FC FCTransposed",
    "$Gradient g0 i0 i1 > 0 1 2": "ElementwiseLinear",
    "$Gradient g0 i0 i1 i2 o1 o2 > 0 1 2": "GroupNorm",
    "$Gradient i0! i1 i2 g0 o1? o2? > 0 1 2": "InstanceNorm",
    "$Gradient g0 i0 i1 o1 > 0 1 2": "RMSNorm",
    "$Gradient g0 g1 i0 > 0": "BatchMoments",
    "$Gradient g0 g1 i0 o0 > 0": "Moments",
    "$Gradient i0 g0 o1 > 0": "MaxPoolWithIndex",
    "$Gradient i0 i1 o1 g0 > 0": "RoIPool",
    "$Gradient i0 i1 i2 i4 o1 o2 o3 g0 > 0 1 2": "TTSparseLengthsSum",
    # Losses and distances.
    "$Gradient i0 i1 g0 > 0 1": "CosineSimilarity DotProduct L1Distance SquaredL2Distance",
    "$Gradient g0 i0 i1 > 0": "BernoulliJSD SigmoidCrossEntropyWithLogits",
    "$Gradient g0 i0 i1 i2 > 0": "WeightedSigmoidCrossEntropyWithLogits",
    "$Gradient i0 i1 i2 g0 > 0 1": "MarginRankingCriterion",
    "$Gradient i0 i1 g0 i2? > 0": "PairWiseLoss",
    "$Gradient i0 i1 i2? o0 g1 > 0": "SoftmaxWithLoss SpatialSoftmaxWithLoss",
    "$Gradient i0 i2 o1 g0 > 0": "LambdaRankNdcg",
    "$Gradient i0 i1 i2 i3 o1 g0 > 0 1 2 g1": "HSoftmax",
}

# Types whose inputs have no gradients: back-propagation ends at them without an error.
NO_GRADIENT = """
AtomicIter BooleanMaskLengths BooleanUnmask
CloseBlobsQueue CloseRebatchingQueue Conditional ConstantFill CreateBlobsQueue CreateDB
CreateRebatchingQueue CreateTextFileReader DenseVectorToIdList DequeueBlobs DequeueRebatchingQueue
DiagonalFill EnqueueBlobs EnqueueRebatchingQueue EnsureCPUOutput Float16ConstantFill
Float16UniformFill
GatherRangesToDense GaussianFill GivenTensorBoolFill
GivenTensorByteStringToUInt8Fill GivenTensorDoubleFill GivenTensorFill GivenTensorInt16Fill
GivenTensorInt64Fill GivenTensorIntFill GivenTensorStringFill
InferenceLSTM IntIndexCreate Iter LearningRate LearningRateAdaption LengthsPartition
LengthsRangeFill Load LongIndexCreate MSRAFill Partition
Range RangeFill SafeDequeueBlobs SafeEnqueueBlobs
Size SparseDropoutWithReplacement
StopGradient StringIndexCreate
TensorProtosDBInput TextFileReaderRead UniformFill UniformIntFill UniqueUniformFill
WeightedSampleDequeueBlobs XavierFill
"""

# Types for which asking for a gradient is an error.
UNDEFINED = """
APMeter Accumulate AccumulateHistogram Accuracy Adadelta Adagrad Adam Allgather Allreduce And Append
ArgMax ArgMin AsyncNetBarrier AtomicAppend AtomicFetchAdd BBoxTransform Barrier BitwiseAnd BitwiseOr
BitwiseXor BoxWithNMSLimit Broadcast ChannelBackpropStats
ChannelStats CheckAtomicBool CheckDatasetConsistency Checkpoint ClipTensorByScaling CloneCommonWorld
CollectAndDistributeFpnRpnProposals CollectRpnProposals CollectTensor ComputeOffset
ConcatTensorVector ConditionalSetAtomicBool CountDown CountUp CreateAtomicBool CreateBlobsQueueDB
CreateCommonWorld CreateCounter CreateMutex CreateScope CreateTensorVector CreateTreeCursor DBExists
DestroyCommonWorld DistributeFpnProposals EQ EnforceFinite EnsureClipped Fail FeedBlob
Float16SparseNormalize Free Ftrl GE GFtrl GT GenerateProposals
GenerateProposalsCPP HSoftmaxSearch HasElements HasScope HeatmapMaxKeypoint IndexFreeze
IndexLoad IndexSize IndexStore IsEmpty LE LT Lars LastNWindowCollector
LogFatal MomentumSGD MomentumSGDUpdate
MultiClassAccuracy NCCLAllGather NCCLAllreduce NCCLBroadcast NCCLReduce NCCLReduceScatter NE Not Or
PackRecords Perplexity Print RMACRegions ReadNextBatch
ReadRandomBatch ReceiveTensor RecurrentNetworkBlobFetcher Reduce ReduceScatter RemoveDataBlocks
ReplaceNaN ReservoirSampling ResetCounter ResetCursor ResizeLike RetrieveCount RmsProp
RowWiseCounter RowWiseSparseAdagrad RowWiseSparseAdam Save Scatter ScatterAssign ScatterWeightedSum
SendTensor Shape Sign Snapshot
SparseAdadelta SparseAdagrad SparseAdam SparseFtrl SparseMomentumSGDUpdate SparseNormalize
SparseStorm SparseWngrad Storm
SumElementsInt Summarize TensorVectorSize ThrowChildThreadException ThrowException
UnPackRecords WallClockTime WeightScale WeightedSample Where Wngrad Xor YellowFin
"""

# Types whose gradient Caffe2 declares, but does not implement.
UNIMPLEMENTED = """
BatchBoxCox Ceil Floor TT
"""
