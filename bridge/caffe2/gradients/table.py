# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of each operator type, as patterns; `patterns` explains the notation.

Gradients that no pattern expresses are in `makers`.
Follows the gradient makers of caffe2/operators, PyTorch 1.8.1, which were called for each type.
"""

__all__ = ["NO_GRADIENT", "PATTERNS", "UNDEFINED", "UNIMPLEMENTED"]

PATTERNS = {
    # One input, one output.
    "$Gradient i0 g0 > 0": "AveragedLoss IntegralImage Normalize",
    "$Gradient g0 i0 > 0": "ResizeNearest3D",
    "$Gradient o0 g0 > 0": "Softmax",
    "$Gradient i0 o0 g0 > 0": (
        "AveragePool AveragePool1D AveragePool2D AveragePool3D LRN LpPool MaxPool MaxPool1D "
        "MaxPool2D MaxPool3D"
    ),
    "$Gradient g0 > 0": "ChannelShuffle MakeTwoClass PadImage",
    "NanCheck g0 > 0": "NanCheck",
    # Two inputs, element by element; several.
    "SquareRootDivide g0 i1 > 0": "SquareRootDivide",
    # Shapes and devices.
    "SpaceToBatch g0 > 0": "BatchToSpace",
    "BatchToSpace g0 > 0": "SpaceToBatch",
    "Im2Col g0 > 0": "Col2Im",
    "Col2Im g0 i0 > 0": "Im2Col",
    "ReversePackedSegs g0 i1 > 0": "ReversePackedSegs",
    "UnpackSegments i0 g0 > 1": "PackSegments",
    "PackSegments i0 g0 > 1": "UnpackSegments",
    "UnpackRNNSequence g0 i1 > 0": "PackRNNSequence",
    "PackRNNSequence g0 i1 > 0": "UnpackRNNSequence",
    "$Gradient i0 g0 i3? > 1": "SparseToDenseMask",
    "$Gradient i0 i1 g0 > 0": ("CosineEmbeddingCriterion CrossEntropy LabelCrossEntropy"),
    "$Gradient i1 g0 > 0": "BatchPermutation",
    # Sums and choices.
    "$Gradient g0 i0 i1? > 0": "ResizeNearest UpsampleBilinear",
    "$Gradient g0 o1 i0 > 0": "TopK",
    "$Gradient i0 i1 g0 o1 > 0": "FlexibleTopK",
    "$Gradient i1 o1 g0 > 0": "LengthsTopK",
    "LengthsSum g0 i1 > 0": "LengthsTile",
    "LengthsIndicesInGradientMeanGradient g0 i1 i0 > 0": "LengthsMean",
    "LengthsIndicesInGradientSumGradient g0 i1 i0 > 0": "LengthsSum",
    "$WithMainInputAndForwardOutputGradient o0 g0 i1 i0 > 0": "LengthsMax",
    "$Gradient g0 i1 > 0": (
        "SortedSegmentMean SortedSegmentSum UnsortedSegmentMean UnsortedSegmentSum"
    ),
    "$Gradient i0 o0 g0 i1 > 0": (
        "SortedSegmentRangeLogMeanExp SortedSegmentRangeLogSumExp SortedSegmentRangeMax "
        "SortedSegmentRangeMean SortedSegmentRangeSum"
    ),
    "SparseLengthsIndicesInGradientMeanGradient g0 i2 i1 > 0@1": "SparseLengthsMean",
    "SparseLengthsIndicesInGradientSumGradient g0 i2 i1 > 0@1": "SparseLengthsSum",
    "SortedSegmentMeanGradient g0 i2 > 0@1": "SparseSortedSegmentMean",
    "SortedSegmentSumGradient g0 i2 > 0@1": "SparseSortedSegmentSum",
    "UnsortedSegmentMeanGradient g0 i2 > 0@1": "SparseUnsortedSegmentMean",
    "UnsortedSegmentSumGradient g0 i2 > 0@1": "SparseUnsortedSegmentSum",
    # Layers with parameters, normalization.
    "$Gradient i0 i1 g0 > 1 2 0": "FC FCTransposed",
    "$Gradient g0 i0 i1 > 0 1 2": "ElementwiseLinear",
    "$Gradient g0 i0 i1 i2 o1 o2 > 0 1 2": "GroupNorm",
    "$Gradient i0! i1 i2 g0 o1? o2? > 0 1 2": "InstanceNorm",
    "$Gradient g0 i0 i1 o1 > 0 1 2": "RMSNorm",
    "$Gradient g0 g1 i0 > 0": "BatchMoments",
    "$Gradient i0 g0 o1 > 0": "MaxPoolWithIndex",
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
    "$Gradient i* g* > 0": "QuantDecode",
}

# Types whose inputs have no gradients: back-propagation ends at them without an error.
NO_GRADIENT = """
AtomicIter BatchBucketize BatchOneHot BisectPercentile
CloseBlobsQueue CloseRebatchingQueue CreateBlobsQueue CreateDB
CreateRebatchingQueue CreateTextFileReader DequeueBlobs DequeueRebatchingQueue
EnqueueBlobs EnqueueRebatchingQueue
FloatToFused2BitFakeRowwiseQuantized FloatToFused2BitRowwiseQuantized
FloatToFused4BitFakeRowwiseQuantized FloatToFused4BitRowwiseQuantized
FloatToFused8BitRowwiseQuantized FloatToFused8BitRowwiseQuantizedHalfScaleBias
FloatToFusedRandRowwiseQuantized FloatToRowwiseQuantized8Bits Fused2BitRowwiseQuantizedToFloat
Fused2BitRowwiseQuantizedToHalf Fused4BitRowwiseQuantizedToFloat Fused4BitRowwiseQuantizedToHalf
Fused8BitRowwiseQuantizedHalfScaleBiasToFloat Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat
Fused8BitRowwiseQuantizedToFloat Fused8BitRowwiseQuantizedToHalfFloat
FusedRandRowwiseQuantizedToFloat GatherRangesToDense
HalfFloatToFused8BitRowwiseQuantized
HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias HalfToFused2BitFakeRowwiseQuantized
HalfToFused2BitRowwiseQuantized HalfToFused4BitFakeRowwiseQuantized HalfToFused4BitRowwiseQuantized
InferenceLSTM IntIndexCreate Iter LearningRate LearningRateAdaption LengthsPad
Load LongIndexCreate MergeIdLists NGramFromCategorical OneHot
Percentile Rowwise8BitQuantizedToFloat SafeDequeueBlobs SafeEnqueueBlobs
SegmentOneHot SparseLengthsMean2BitRowwiseSparse
SparseLengthsMean4BitRowwiseSparse SparseLengthsMean8BitRowwiseSparse SparseLengthsMean8BitsRowwise
SparseLengthsMeanFused2BitRowwise SparseLengthsMeanFused4BitRowwise
SparseLengthsMeanFused8BitRowwise SparseLengthsSum2BitRowwiseSparse
SparseLengthsSum4BitRowwiseSparse SparseLengthsSum8BitRowwiseSparse SparseLengthsSum8BitsRowwise
SparseLengthsSumFused2BitRowwise SparseLengthsSumFused4BitRowwise SparseLengthsSumFused8BitRowwise
SparseLengthsSumSparseLookup SparseLengthsWeightedMean8BitsRowwise
SparseLengthsWeightedSum2BitRowwiseSparse SparseLengthsWeightedSum4BitRowwiseSparse
SparseLengthsWeightedSum8BitRowwiseSparse SparseLengthsWeightedSum8BitsRowwise
SparseLengthsWeightedSumFused2BitRowwise SparseLengthsWeightedSumFused4BitRowwise
SparseLengthsWeightedSumFused8BitRowwise StringIndexCreate StumpFunc StumpFuncIndex
SwapBestPath TensorProtosDBInput TextFileReaderRead
ViterbiPath WeightedSampleDequeueBlobs
"""

# Types for which asking for a gradient is an error.
UNDEFINED = """
APMeter Accumulate AccumulateHistogram Accuracy Adadelta Adagrad Adam Allgather Allreduce Append
AsyncNetBarrier AtomicAppend AtomicFetchAdd Barrier
Broadcast CTCBeamSearchDecoder CTCGreedyDecoder ChannelBackpropStats
ChannelStats CheckAtomicBool CheckDatasetConsistency Checkpoint CloneCommonWorld
CollectTensor ComputeOffset
ConcatTensorVector ConditionalSetAtomicBool CountDown CountUp CreateAtomicBool CreateBlobsQueueDB
CreateCommonWorld CreateCounter CreateMutex CreateScope CreateTensorVector CreateTreeCursor DBExists
DestroyCommonWorld EnforceFinite Fail FeedBlob
FindDuplicateElements Float16SparseNormalize Free Ftrl GFtrl
HSoftmaxSearch HasScope Histogram IndexFreeze
IndexHash IndexLoad IndexSize IndexStore IsMemberOf Lars LastNWindowCollector
LengthsGather LengthsToSegmentIds LengthsToShape LogFatal MomentumSGD MomentumSGDUpdate
MultiClassAccuracy NCCLAllGather NCCLAllreduce NCCLBroadcast NCCLReduce NCCLReduceScatter
PackRecords Perplexity PiecewiseLinearTransform Print Quantile ReadNextBatch
ReadRandomBatch ReceiveTensor RecurrentNetworkBlobFetcher Reduce ReduceScatter
ReservoirSampling ResetCounter ResetCursor RetrieveCount RmsProp
RowWiseCounter RowWiseSparseAdagrad RowWiseSparseAdam Save
SegmentIdsToLengths SegmentIdsToRanges SelfBinningHistogram SendTensor Snapshot
SparseAdadelta SparseAdagrad SparseAdam SparseFtrl SparseMomentumSGDUpdate SparseNormalize
SparseStorm SparseWngrad Storm StringEndsWith StringEquals StringJoin StringPrefix StringStartsWith
StringSuffix Summarize TensorVectorSize ThrowChildThreadException ThrowException
UnPackRecords Unique WallClockTime WeightScale Wngrad YellowFin
"""

# Types whose gradient Caffe2 declares, but does not implement.
UNIMPLEMENTED = """
LengthsSplit TT
"""
