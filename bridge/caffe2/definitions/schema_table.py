# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's operators, one word each: ``Name:inputs:outputs:in-place``.

A count is ``2``, ``1-3``, ``1-*``, ``1|3`` or ``2n+1`` (3, 5, 7, ...). In-place is a list of pairs
``input>output`` that may be one blob, or must be if followed by ``!``; ``1>0*`` stands for 1>0,
2>1, and so on. Printed by tests/conformance/operators/record_schemas.py from the operators
registered in PyTorch 1.8.1, for the first six inputs and four outputs.
"""

__all__ = ["TABLE"]

TABLE = """
APMeter:2:1: ATen:0-*:0-*: Abs:1:1: Accumulate:1:1: AccumulateHistogram:1:2: Accuracy:2:1:
Acos:1:1: Adadelta:5:3:0>0,1>1,2>2 Adagrad:4:2-4:0>0,1>1 Adam:6:3-4:0>0,1>1,2>2 Add:2:1:0>0,1>0
AffineChannel:3:1:0>0 Alias:1:1: AliasWithName:1:1:0>0 Allgather:2-*:1:
Allreduce:2-*:1-*:1>0*! And:2:1:0>0 Append:2:1:0>0! ArgMax:1:1: ArgMin:1:1:
Asin:1:1: Assert:1:0: AsyncNetBarrier:1-*:1-*:0>0* Atan:1:1:
AtomicAppend:3-*:1-*:1>0* AtomicFetchAdd64:3:2:1>0 AtomicFetchAdd:3:2:1>0
AtomicIter:2:1:1>0! AveragePool1D:1:1: AveragePool2D:1:1: AveragePool3D:1:1: AveragePool:1:1:
AveragePut:1:0: AveragedLoss:1:1: BBoxTransform:3:1-2:
BRGNCHWCToPackedInt8BGRAStylizerDeprocess:2:1: Barrier:1:0-*: BatchBoxCox:3:1:0>0
BatchDenseToSparse:3:1: BatchGather:2:1:
BatchMatMul:2:1: BatchMoments:1:2: BatchPermutation:2:1:
BatchSparseToDense:3-4:1: BatchToSpace:1:1: BernoulliJSD:2:1:
BitwiseAnd:2:1:0>0 BitwiseOr:2:1:0>0 BitwiseXor:2:1:0>0 BooleanMask:2:1-2: BooleanMaskLengths:2:1:
BooleanUnmask:2n:1: BoxWithNMSLimit:2-3:3-6: Broadcast:2-*:1-*:1>0*!
C10LayerNorm_DontUseThisOpYet:1|3:3:
Cast:1:1: Cbrt:1:1:0>0 Ceil:1:1:0>0 ChannelBackpropStats:4:2: ChannelShuffle:1:1:
ChannelStats:1:2: CheckAtomicBool:1:1: CheckCounterDone:1:1: CheckDatasetConsistency:1-*:0:
Checkpoint:1-*:0: Clip:1:1:0>0 ClipTensorByScaling:2-3:1:0>0 CloneCommonWorld:1:1:
CloseBlobsQueue:1:0: CloseRebatchingQueue:1:0: Col2Im:2:1:
CollectAndDistributeFpnRpnProposals:2-*:3-*: CollectRpnProposals:2-*:1:
CollectTensor:2n:1-*:0>0*! ColwiseMax:1:1: ComputeOffset:1-*:1: Concat:1-*:2:
ConcatBatchMatMulBatchGatherOp:1-*:1: ConcatTensorVector:1:1: Conditional:3:1:
ConditionalSetAtomicBool:2:0: ConstantFill:0-2:1:0>0 Conv1D:2-3:1: Conv2D:2-3:1: Conv3D:2-3:1:
Conv:2-3:1: ConvRelu:2-3:1: ConvTranspose:2-3:1: Copy:1:1: CopyCPUToGPU:1:1: CopyFromCPUInput:1:1:
CopyGPUToCPU:1:1: CopyOnDeviceLike:2:1: CopyRowsToTensor:3:1:0>0! Cos:1:1: Cosh:1:1:
CosineEmbeddingCriterion:2:1: CosineSimilarity:2:1: CountDown:1:1: CountUp:1:1:
CreateAtomicBool:0:1: CreateBlobsQueue:0:1: CreateBlobsQueueDB:1:1: CreateCommonWorld:0-1:1:
CreateCounter:0:1: CreateDB:0:1: CreateMap:0:1: CreateMutex:0:1: CreateRebatchingQueue:0:1:
CreateScope:0:1: CreateTensorVector:0:1: CreateTextFileReader:0:1: CreateTreeCursor:0:1:
CrossEntropy:2:1: Cube:1:1: DBExists:0:1: DataCouple:0-*:0-*:0>0*! DeformConv:3-4:1:
DenseVectorToIdList:1:2: DepthConcat:1-*:2: DepthSplit:1-2:1-*: DequeueBlobs:1:1-*:
DequeueRebatchingQueue:1:1-*: DestroyCommonWorld:1:1:0>0! DiagonalFill:0-1:1:0>0
DistributeFpnProposals:1:2-*: Div:2:1:0>0
Do:1-*:1-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
DotProduct:2:1: DotProductWithPadding:2:1: Dropout:1:1-2:0>0 DropoutGrad:1-2:1:0>0 EQ:2:1:
ElementwiseLinear:3:1: Elu:1:1:0>0 EnforceFinite:1:0: EnqueueBlobs:2-*:1-*:1>0*!
EnqueueRebatchingQueue:2-*:0: EnsureCPUOutput:1:1: EnsureClipped:1-3:1:0>0 EnsureDense:1:1:0>0
Erf:1:1: Exp:1:1:0>0 Expand:2:1: ExpandDims:1:1:0>0 FC:3:1: FCTransposed:3:1:
FP16MomentumSGDUpdate:4:3:0>0,1>1,3>2 FP32MomentumSGDUpdate:4:3:0>0,1>1,3>2 Fail:0:0:
FbFCPacked:3:1: FbGemmPack:1:1:0>0 FbGemmPackTranspose:1:1:0>0 FeedBlob:0:1:
FileStoreHandlerCreate:0:1: Flatten:1:1: FlattenToVec:1:1:
Float16ConstantFill:0:1: Float16SparseNormalize:2-3:1:0>0!
Float16UniformFill:0:1:
FloatToHalf:1:1: Floor:1:1:0>0 Free:1-*:1-*:0>0*!
Ftrl:3-4:2:0>0,1>1
GE:2:1:
GFtrl:3-4:2:0>0,1>1 GRUUnit:3-4:1: GT:2:1: Gather:2:1: GatherByKey:2-*:1:
GatherRanges:2:2: GatherRangesToDense:2-3:1-*:
GaussianFill:0-1:1:0>0 Gelu:1:1: GenerateProposals:4:2: GenerateProposalsCPP:4:2:
GetAllBlobNames:0:1: GetCursorOffset:1:1: GetGPUMemoryUsage:0:1: GivenTensorBoolFill:0-1:1:0>0
GivenTensorByteStringToUInt8Fill:0-1:1:0>0 GivenTensorDoubleFill:0-1:1:0>0
GivenTensorFill:0-1:1:0>0 GivenTensorInt16Fill:0-1:1:0>0 GivenTensorInt64Fill:0-1:1:0>0
GivenTensorIntFill:0-1:1:0>0 GivenTensorStringFill:0-1:1:0>0 Glu:1:1: GroupNorm:3:1|3:
HSoftmax:4:2: HSoftmaxSearch:3:2:
HalfToFloat:1:1:
HardSigmoid:1:1:0>0
HasElements:1-*:1: HasScope:1:1: HeatmapMaxKeypoint:2:1:
HuffmanTreeHierarchy:1:1:
If:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Im2Col:1:1: IncrementPut:1:0: IndexFreeze:1:1:0>0! IndexGet:2:1:
IndexLoad:2:1:0>0! IndexSize:1:1: IndexStore:1:1: InferenceLSTM:1-*:3: InstanceNorm:3:1-3:0>0
Int8Add:2:1:0>0,1>0 Int8AddRelu:2:1:0>0,1>0 Int8AveragePool:1:1: Int8AveragePoolRelu:1:1:
Int8ChannelShuffle:1:1: Int8Concat:1-*:1-2: Int8Conv:2-3:1: Int8ConvRelu:2-3:1:
Int8ConvTranspose:2-3:1: Int8Dequantize:1:1: Int8FC:3-4:1-4: Int8FCPackWeight:1-2:1-2:
Int8Flatten:1:1: Int8GenQuantParams:2:1: Int8GivenIntTensorFill:0:1: Int8GivenTensorFill:0:1:
Int8LeakyRelu:1:1:0>0 Int8MaxPool:1:1: Int8MaxPoolRelu:1:1: Int8Quantize:1-2:1: Int8Relu:1:1:0>0
Int8Reshape:1-2:2:0>0 Int8ResizeNearest:1:1: Int8RoIAlign:2:1: Int8Sigmoid:1:1: Int8Slice:1-3:1:
Int8Softmax:1:1: Int8Sum:1-*:1:0>0,1>0 Int8SumRelu:1-*:1:0>0,1>0 Int8Transpose:1:1:
IntIndexCreate:0:1: IntegralImage:1:1: IsEmpty:1:1: IsNaN:1:1: Iter:0-1:1:0>0!
KeyValueToMap:2:1: L1Distance:2:1: LC1D:2-3:1: LC2D:2-3:1: LC3D:2-3:1: LC:2-3:1:
LE:2:1: LRN:1:1-2: LSTMUnit:4-5:2: LT:2:1: LabelCrossEntropy:2:1: LambdaRankNdcg:3:2: Lars:5:1:
LastNWindowCollector:3-5:2-3:0>0!,1>1!,4>2! LayerNorm:1|3:3: LeakyRelu:1:1:0>0 LearningRate:1:1:
LearningRateAdaption:3:1:0>0
LengthsPartition:2-*:2-*: LengthsRangeFill:1:1:
Load:0-*:0-*:
Log:1:1:0>0 Logit:1:1:0>0 LongIndexCreate:0:1: LpNorm:1:1: LpPool:1:1: MSRAFill:0-1:1:0>0
MakeTwoClass:1:1: MapToKeyValue:1:2: MarginRankingCriterion:3:1: MatMul:2-3:1: Max:1-*:1:0>0
MaxPool1D:1:1: MaxPool2D:1:1: MaxPool3D:1:1: MaxPool:1:1: MaxPoolWithIndex:1:2: Mean:1-*:1:0>0
MergeDim:1:1:0>0
Min:1-*:1:0>0
Mish:1:1: Mod:1:1:0>0 Moments:1:2: MomentumSGD:3:2:0>0,1>1 MomentumSGDUpdate:4:3:0>0,1>1,3>2
Mul:2:1:0>0,1>0 MultiClassAccuracy:2:2: NCHW2NHWC:1:1: NE:2:1:
NHWC2NCHW:1:1: NanCheck:1-*:1:0>0 NegateGradient:1:1:0>0 Negative:1:1:0>0 Normalize:1:1:
NormalizeL1:1:1: NormalizePlanarYUV:3:1:0>0 Not:1:1: NumpyTile:2:0-*:
ONNXWhile:2-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Onnxifi:0-*:0-*: Or:2:1:0>0 PRelu:2:1:0>0 PackRecords:1-*:1:
PackedInt8BGRANHWCToNCHWCStylizerPreprocess:2:1:
PadImage:1:1: PairWiseLoss:2-3:1: Partition:1-*:1-*: Perplexity:1:1:
Pow:1-2:1:0>0,1>0 PrependDim:1:1:0>0 Print:1:0:
Python:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonDLPack:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
RMACRegions:1:1: RMSNorm:3:2: Range:1-3:1:
RangeFill:0-1:1:0>0 ReadNextBatch:1-*:1-*: ReadRandomBatch:1-*:1-*:
ReceiveTensor:2|4:3:1>0!,2>1,3>2 Reciprocal:1:1:0>0 RecurrentNetwork:1-*:2-*:
RecurrentNetworkBlobFetcher:1:1: Reduce:2:1: ReduceBackMax:1-2:1: ReduceBackMean:1-2:1:
ReduceBackSum:1-2:1: ReduceFrontMax:1-2:1: ReduceFrontMean:1-2:1: ReduceFrontSum:1-2:1:
ReduceFrontWeightedSum:2:1: ReduceL1:1:1: ReduceL2:1:1: ReduceMax:1:1: ReduceMean:1:1:
ReduceMin:1:1: ReduceScatter:2-*:1-*:1>0*! ReduceSum:1:1: ReduceTailSum:1:1:
Relu:1:1:0>0 ReluN:1:1:0>0 RemoveDataBlocks:2:1: ReplaceNaN:1:1:0>0
ReservoirSampling:4|7:2|4:0>0!,1>1!,5>2! ResetCounter:1:0-1: ResetCursor:1:0: Reshape:1-2:2:0>0
ResizeLike:2:1: ResizeNearest3D:1:1: ResizeNearest:1-2:1: RetrieveCount:1:1:
RmsProp:4:3:0>0,1>1,2>2 RoIAlign:2:1: RoIAlignRotated:2:1: RoIPool:2:1-2:
RowMul:2:1: RowWiseCounter:4:2:0>0!,1>1! RowWiseSparseAdagrad:5:2:0>0!,1>1!
RowWiseSparseAdam:7:3-4:0>0!,1>1!,2>2! RowwiseMax:1:1:
Rsqrt:1:1:0>0 SafeDequeueBlobs:1:2-*: SafeEnqueueBlobs:2-*:2-*:1>0*! Save:1-*:0:
Scale:1:1:0>0
ScaleBlobs:1-*:1-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Scatter:3:1:0>0 ScatterAssign:3:1:0>0! ScatterWeightedSum:2n+3:1:0>0!
Selu:1:1:0>0
SendTensor:2|4:0: Shape:1:1: Sigmoid:1:1:0>0
SigmoidCrossEntropyWithLogits:2:1: Sign:1:1: Sin:1:1: Sinh:1:1: SinusoidPositionEncoding:1:1:
Size:1:1: Slice:1-3:1: Snapshot:0-*:0-*: Softmax:1:1: SoftmaxWithLoss:2-3:2-3: Softplus:1:1:0>0
Softsign:1:1:0>0 SortAndShuffle:1-*:1:
SpaceToBatch:1:1:
SparseAdadelta:6:3:0>0!,1>1!,2>2! SparseAdagrad:5:2:0>0!,1>1! SparseAdam:7:3-4:0>0!,1>1!,2>2!
SparseDropoutWithReplacement:2:2: SparseFtrl:4-5:2:0>0!,1>1!
SparseLpRegularizer:2-3:1:0>0!
SparseNormalize:2-3:1:0>0!
SparseStorm:6:3:0>0!,1>1!,2>2! SparseToDense:2-3:1:
SparseToDenseMask:3-4:1-2:
SparseWngrad:5:2:0>0!,1>1!
SpatialBN:5|7:1|5:0>0,3>1!,4>2!,5>3 SpatialSoftmaxWithLoss:2-3:2: Split:1-2:1-*:
SplitByLengths:2:1-*: Sqr:1:1:0>0 Sqrt:1:1:0>0 SquareRootDivide:2:1:0>0 SquaredL2Distance:2:1:
Squeeze:1:1:0>0 StatRegistryCreate:0:1: StatRegistryExport:0-1:3: StatRegistryUpdate:2-3:0:
StdDevPut:1:0: StopGradient:1:1:0>0 StoreAdd:1:1: StoreGet:1:1: StoreSet:2:0: StoreWait:1-2:0:
Storm:5:3:0>0,1>1,2>2 StringIndexCreate:0:1:
Sub:2:1:0>0,1>0 Sum:1-*:1:0>0 SumElements:1:1: SumElementsInt:1:1: SumInt:1-*:1:0>0
SumReduceLike:2:1: SumRelu:1-*:1:0>0 SumSqrElements:1:1: Summarize:1:0-1:
Swish:1:1: TT:3:1: TTSparseLengthsSum:5:4: Tan:1:1: Tanh:1:1:0>0 TensorProtosDBInput:1:1-*:
TensorVectorSize:1:1: TextFileReaderRead:1:1-*: ThresholdedRelu:1:1:0>0 ThrowException:0:0:
Tile:1-3:1: TimerBegin:0:1: TimerEnd:1:0: TimerGet:1:1: TimerGetAndEnd:1:1:
Transpose:1:1: TrimDataset:1-*:1-*:0>0*! UnPackRecords:1-*:1-*:
UniformFill:0|1|3:1:0>0 UniformIntFill:0|1|3:1:0>0 UniqueUniformFill:0-2:1:0>0
UnsafeCoalesce:0-*:1-*:0>0*
UpsampleBilinear:1-2:1: VariableLengthSequencePadding:2:1:0>0 WallClockTime:0:1:
WeightScale:2:1:0>0 WeightedMultiSampling:1-2:1: WeightedSample:1-2:1-2:
WeightedSampleDequeueBlobs:1-*:2-*: WeightedSigmoidCrossEntropyWithLogits:3:1:
WeightedSum:2n:1:0>0 Where:3:1:
While:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Wngrad:4:2-4:0>0,1>1 XavierFill:0-1:1:0>0 Xor:2:1:0>0 ZeroGradient:1:0:
"""
