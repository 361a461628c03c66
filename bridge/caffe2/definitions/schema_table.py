# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's operators, one word each: ``Name:inputs:outputs:in-place``.

A count is ``2``, ``1-3``, ``1-*``, ``1|3`` or ``2n+1`` (3, 5, 7, ...). In-place is a list of pairs
``input>output`` that may be one blob, or must be if followed by ``!``; ``1>0*`` stands for 1>0,
2>1, and so on. Printed by tests/conformance/operators/record_schemas.py from the operators
registered in PyTorch 1.8.1, for the first six inputs and four outputs.
"""

__all__ = ["TABLE"]

TABLE = """
APMeter:2:1: ATen:0-*:0-*: Accumulate:1:1: AccumulateHistogram:1:2: Accuracy:2:1:
Adadelta:5:3:0>0,1>1,2>2 Adagrad:4:2-4:0>0,1>1 Adam:6:3-4:0>0,1>1,2>2
AddPadding:1-4:1-2: AffineChannel:3:1:0>0 Alias:1:1: AliasWithName:1:1:0>0 Allgather:2-*:1:
Allreduce:2-*:1-*:1>0*! Append:2:1:0>0!
Assert:1:0: AsyncNetBarrier:1-*:1-*:0>0*
AtomicAppend:3-*:1-*:1>0* AtomicFetchAdd64:3:2:1>0 AtomicFetchAdd:3:2:1>0
AtomicIter:2:1:1>0! AveragePool1D:1:1: AveragePool2D:1:1: AveragePool3D:1:1: AveragePool:1:1:
AveragePut:1:0: AveragedLoss:1:1:
BRGNCHWCToPackedInt8BGRAStylizerDeprocess:2:1: Barrier:1:0-*:
BatchBucketOneHot:3:1: BatchBucketize:4:1:
BatchMatMul:2:1: BatchMoments:1:2: BatchOneHot:3:1: BatchPermutation:2:1:
BatchToSpace:1:1: BernoulliJSD:2:1: BisectPercentile:1:1:
Broadcast:2-*:1-*:1>0*!
Bucketize:1:1: ByteWeightDequant:1:1: C10LayerNorm_DontUseThisOpYet:1|3:3:
CTCBeamSearchDecoder:1-2:2-3: CTCGreedyDecoder:1-2:2:
ChannelBackpropStats:4:2: ChannelShuffle:1:1:
ChannelStats:1:2: CheckAtomicBool:1:1: CheckCounterDone:1:1: CheckDatasetConsistency:1-*:0:
Checkpoint:1-*:0: CloneCommonWorld:1:1:
CloseBlobsQueue:1:0: CloseRebatchingQueue:1:0: Col2Im:2:1:
CollectTensor:2n:1-*:0>0*! ComputeOffset:1-*:1:
ConcatBatchMatMulBatchGatherOp:1-*:1: ConcatTensorVector:1:1:
ConditionalSetAtomicBool:2:0: Conv1D:2-3:1: Conv2D:2-3:1: Conv3D:2-3:1:
Conv:2-3:1: ConvRelu:2-3:1: ConvTranspose:2-3:1: CopyCPUToGPU:1:1:
CopyGPUToCPU:1:1:
CosineEmbeddingCriterion:2:1: CosineSimilarity:2:1: CountDown:1:1: CountUp:1:1:
CreateAtomicBool:0:1: CreateBlobsQueue:0:1: CreateBlobsQueueDB:1:1: CreateCommonWorld:0-1:1:
CreateCounter:0:1: CreateDB:0:1: CreateMap:0:1: CreateMutex:0:1: CreateRebatchingQueue:0:1:
CreateScope:0:1: CreateTensorVector:0:1: CreateTextFileReader:0:1: CreateTreeCursor:0:1:
CrossEntropy:2:1: DBExists:0:1: DataCouple:0-*:0-*:0>0*! DeformConv:3-4:1:
DequeueBlobs:1:1-*:
DequeueRebatchingQueue:1:1-*: DestroyCommonWorld:1:1:0>0!
Do:1-*:1-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
DotProduct:2:1: Dropout:1:1-2:0>0 DropoutGrad:1-2:1:0>0
ElementwiseLinear:3:1: EnforceFinite:1:0: EnqueueBlobs:2-*:1-*:1>0*!
EnqueueRebatchingQueue:2-*:0:
FC:3:1: FCTransposed:3:1:
FP16MomentumSGDUpdate:4:3:0>0,1>1,3>2 FP32MomentumSGDUpdate:4:3:0>0,1>1,3>2 Fail:0:0:
FbFCPacked:3:1: FbGemmPack:1:1:0>0 FbGemmPackTranspose:1:1:0>0 FeedBlob:0:1:
FileStoreHandlerCreate:0:1: Find:2:1: FindDuplicateElements:1:1:
FlexibleTopK:2:2: Float16SparseNormalize:2-3:1:0>0!
FloatToFused2BitFakeRowwiseQuantized:1:1:
FloatToFused2BitRowwiseQuantized:1:1: FloatToFused4BitFakeRowwiseQuantized:1:1:
FloatToFused4BitRowwiseQuantized:1:1: FloatToFused8BitRowwiseQuantized:1:1:
FloatToFused8BitRowwiseQuantizedHalfScaleBias:1:1: FloatToFusedRandRowwiseQuantized:1:1:
FloatToRowwiseQuantized8Bits:1:2: Free:1-*:1-*:0>0*!
Ftrl:3-4:2:0>0,1>1 Fused2BitRowwiseQuantizedToFloat:1:1: Fused2BitRowwiseQuantizedToHalf:1:1:
Fused4BitRowwiseQuantizedToFloat:1:1: Fused4BitRowwiseQuantizedToHalf:1:1:
Fused8BitRowwiseQuantizedHalfScaleBiasToFloat:1:1:
Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat:1:1: Fused8BitRowwiseQuantizedToFloat:1:1:
Fused8BitRowwiseQuantizedToHalfFloat:1:1: FusedRandRowwiseQuantizedToFloat:1:1:
GFtrl:3-4:2:0>0,1>1 GRUUnit:3-4:1:
GatherFused8BitRowwise:2:1: GatherPadding:2:1-2: GatherRanges:2:2: GatherRangesToDense:2-3:1-*:
GetAllBlobNames:0:1: GetCursorOffset:1:1: GetGPUMemoryUsage:0:1:
GroupNorm:3:1|3:
HSoftmax:4:2: HSoftmaxSearch:3:2: HalfFloatToFused8BitRowwiseQuantized:1:1:
HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias:1:1:
HalfToFused2BitFakeRowwiseQuantized:1:1: HalfToFused2BitRowwiseQuantized:1:1:
HalfToFused4BitFakeRowwiseQuantized:1:1: HalfToFused4BitRowwiseQuantized:1:1:
HasScope:1:1: Histogram:1-*:1:
HuffmanTreeHierarchy:1:1:
If:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Im2Col:1:1: IncrementPut:1:0: IndexFreeze:1:1:0>0! IndexGet:2:1: IndexHash:1:1:0>0
IndexLoad:2:1:0>0! IndexSize:1:1: IndexStore:1:1: InferenceLSTM:1-*:3: InstanceNorm:3:1-3:0>0
Int8Add:2:1:0>0,1>0 Int8AddRelu:2:1:0>0,1>0 Int8AveragePool:1:1: Int8AveragePoolRelu:1:1:
Int8ChannelShuffle:1:1: Int8Concat:1-*:1-2: Int8Conv:2-3:1: Int8ConvRelu:2-3:1:
Int8ConvTranspose:2-3:1: Int8Dequantize:1:1: Int8FC:3-4:1-4: Int8FCPackWeight:1-2:1-2:
Int8Flatten:1:1: Int8GenQuantParams:2:1: Int8GivenIntTensorFill:0:1: Int8GivenTensorFill:0:1:
Int8LeakyRelu:1:1:0>0 Int8MaxPool:1:1: Int8MaxPoolRelu:1:1: Int8Quantize:1-2:1: Int8Relu:1:1:0>0
Int8Reshape:1-2:2:0>0 Int8ResizeNearest:1:1: Int8RoIAlign:2:1: Int8Sigmoid:1:1: Int8Slice:1-3:1:
Int8Softmax:1:1: Int8Sum:1-*:1:0>0,1>0 Int8SumRelu:1-*:1:0>0,1>0 Int8Transpose:1:1:
IntIndexCreate:0:1: IntegralImage:1:1: IsMemberOf:1:1: Iter:0-1:1:0>0!
KeySplit:1:1-*: KeyValueToMap:2:1: L1Distance:2:1: LC1D:2-3:1: LC2D:2-3:1: LC3D:2-3:1: LC:2-3:1:
LRN:1:1-2: LSTMUnit:4-5:2: LabelCrossEntropy:2:1: LambdaRankNdcg:3:2: Lars:5:1:
LastNWindowCollector:3-5:2-3:0>0!,1>1!,4>2! LayerNorm:1|3:3: LearningRate:1:1:
LearningRateAdaption:3:1:0>0 LengthsGather:3:1: LengthsMax:2:1: LengthsMean:2:1: LengthsPad:2:1:
LengthsSplit:1-2:1: LengthsSum:2:1:
LengthsTile:2:1: LengthsToOffsets:1:1: LengthsToRanges:1:1: LengthsToSegmentIds:1:1:
LengthsToShape:1:1: LengthsToWeights:1:1: LengthsTopK:2:2: LengthsWeightedSum:3:1: Load:0-*:0-*:
LongIndexCreate:0:1: LpPool:1:1:
MakeTwoClass:1:1: MapToKeyValue:1:2: MarginRankingCriterion:3:1: MatMul:2-3:1:
MaxPool1D:1:1: MaxPool2D:1:1: MaxPool3D:1:1: MaxPool:1:1: MaxPoolWithIndex:1:2:
MergeDenseFeatureTensors:2:3: MergeIdLists:2n:2:
MergeMultiListFeatureTensors:4n:4: MergeMultiMapFeatureTensors:5n:5:
MergeMultiScalarFeatureTensors:3n:3: MergeSingleListFeatureTensors:3n:4:
MergeSingleMapFeatureTensors:4n:5: MergeSingleScalarFeatureTensors:2n:3:
MomentumSGD:3:2:0>0,1>1 MomentumSGDUpdate:4:3:0>0,1>1,3>2
MultiClassAccuracy:2:2: NGramFromCategorical:1:1:
NanCheck:1-*:1:0>0 Normalize:1:1:
NormalizeL1:1:1: NormalizePlanarYUV:3:1:0>0
ONNXWhile:2-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
OneHot:2:1: Onnxifi:0-*:0-*: PackRNNSequence:2:1: PackRecords:1-*:1:
PackSegments:2:1-2: PackedInt8BGRANHWCToNCHWCStylizerPreprocess:2:1: PadEmptySamples:1-*:1-*:
PadImage:1:1: PairWiseLoss:2-3:1: Percentile:3:1: Perplexity:1:1:
PiecewiseLinearTransform:1-4:1: Print:1:0:
Python:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonDLPack:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
QuantDecode:2-*:1-*: Quantile:1-*:1: RMSNorm:3:2:
ReadNextBatch:1-*:1-*: ReadRandomBatch:1-*:1-*:
ReceiveTensor:2|4:3:1>0!,2>1,3>2 RecurrentNetwork:1-*:2-*:
RecurrentNetworkBlobFetcher:1:1: Reduce:2:1:
ReduceScatter:2-*:1-*:1>0*!
RemovePadding:1-2:1-2:
ReservoirSampling:4|7:2|4:0>0!,1>1!,5>2! ResetCounter:1:0-1: ResetCursor:1:0:
ResizeNearest3D:1:1: ResizeNearest:1-2:1: RetrieveCount:1:1:
ReversePackedSegs:2:1: RmsProp:4:3:0>0,1>1,2>2
RowWiseCounter:4:2:0>0!,1>1! RowWiseSparseAdagrad:5:2:0>0!,1>1!
RowWiseSparseAdam:7:3-4:0>0!,1>1!,2>2! Rowwise8BitQuantizedToFloat:2:1:
SafeDequeueBlobs:1:2-*: SafeEnqueueBlobs:2-*:2-*:1>0*! Save:1-*:0:
ScaleBlobs:1-*:1-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
SegmentIdsToLengths:1-2:1:
SegmentIdsToRanges:1-2:1: SegmentOneHot:3:1: SelfBinningHistogram:1-*:2:
SendTensor:2|4:0: SequenceMask:1-2:1:
SigmoidCrossEntropyWithLogits:2:1: SinusoidPositionEncoding:1:1:
Snapshot:0-*:0-*: Softmax:1:1: SoftmaxWithLoss:2-3:2-3:
SortAndShuffle:1-*:1: SortedSegmentMean:2:1: SortedSegmentRangeLogMeanExp:2:1:
SortedSegmentRangeLogSumExp:2:1: SortedSegmentRangeMax:2:1: SortedSegmentRangeMean:2:1:
SortedSegmentRangeSum:2:1: SortedSegmentSum:2:1: SortedSegmentWeightedSum:3:1: SpaceToBatch:1:1:
SparseAdadelta:6:3:0>0!,1>1!,2>2! SparseAdagrad:5:2:0>0!,1>1! SparseAdam:7:3-4:0>0!,1>1!,2>2!
SparseFtrl:4-5:2:0>0!,1>1!
SparseLengthsMean2BitRowwiseSparse:4:1: SparseLengthsMean4BitRowwiseSparse:4:1:
SparseLengthsMean8BitRowwiseSparse:4:1: SparseLengthsMean8BitsRowwise:4:1: SparseLengthsMean:3:1:
SparseLengthsMeanFused2BitRowwise:3:1: SparseLengthsMeanFused4BitRowwise:3:1:
SparseLengthsMeanFused8BitRowwise:3:1: SparseLengthsPositionalWeightedSum:4:1:
SparseLengthsSum2BitRowwiseSparse:4:1: SparseLengthsSum4BitRowwiseSparse:4:1:
SparseLengthsSum8BitRowwiseSparse:4:1: SparseLengthsSum8BitsRowwise:4:1: SparseLengthsSum:3:1:
SparseLengthsSumFused2BitRowwise:3:1: SparseLengthsSumFused4BitRowwise:3:1:
SparseLengthsSumFused8BitRowwise:3:1: SparseLengthsSumSparseLookup:3-4:2-3:
SparseLengthsWeightedMean8BitsRowwise:5:1: SparseLengthsWeightedSum2BitRowwiseSparse:5:1:
SparseLengthsWeightedSum4BitRowwiseSparse:5:1: SparseLengthsWeightedSum8BitRowwiseSparse:5:1:
SparseLengthsWeightedSum8BitsRowwise:5:1: SparseLengthsWeightedSum:4:1:
SparseLengthsWeightedSumFused2BitRowwise:4:1: SparseLengthsWeightedSumFused4BitRowwise:4:1:
SparseLengthsWeightedSumFused8BitRowwise:4:1: SparseLpRegularizer:2-3:1:0>0!
SparseNormalize:2-3:1:0>0! SparseSortedSegmentMean:3:1: SparseSortedSegmentSum:3:1:
SparseSortedSegmentWeightedSum:4:1: SparseStorm:6:3:0>0!,1>1!,2>2!
SparseToDenseMask:3-4:1-2: SparseUnsortedSegmentMean:3:1: SparseUnsortedSegmentSum:3:1:
SparseUnsortedSegmentWeightedSum:4:1: SparseWngrad:5:2:0>0!,1>1!
SpatialBN:5|7:1|5:0>0,3>1!,4>2!,5>3 SpatialSoftmaxWithLoss:2-3:2:
SquareRootDivide:2:1:0>0 SquaredL2Distance:2:1:
StatRegistryCreate:0:1: StatRegistryExport:0-1:3: StatRegistryUpdate:2-3:0:
StdDevPut:1:0: StoreAdd:1:1: StoreGet:1:1: StoreSet:2:0: StoreWait:1-2:0:
Storm:5:3:0>0,1>1,2>2 StringEndsWith:1:1: StringEquals:1:1: StringIndexCreate:0:1: StringJoin:1:1:
StringPrefix:1:1: StringStartsWith:1:1: StringSuffix:1:1: StumpFunc:1:1: StumpFuncIndex:1:2:
Summarize:1:0-1: SwapBestPath:2:1:
TT:3:1: TTSparseLengthsSum:5:4: TensorProtosDBInput:1:1-*:
TensorVectorSize:1:1: TextFileReaderRead:1:1-*: ThrowException:0:0:
TimerBegin:0:1: TimerEnd:1:0: TimerGet:1:1: TimerGetAndEnd:1:1: TopK:1-2:2-3:
TrimDataset:1-*:1-*:0>0*! UnPackRecords:1-*:1-*:
Unique:1:1-2:
UnpackRNNSequence:2:1: UnpackSegments:2:1: UnsafeCoalesce:0-*:1-*:0>0*
UnsortedSegmentMean:2:1: UnsortedSegmentSum:2:1: UnsortedSegmentWeightedSum:3:1:
UpsampleBilinear:1-2:1: VariableLengthSequencePadding:2:1:0>0 ViterbiPath:2:1: WallClockTime:0:1:
WeightScale:2:1:0>0
WeightedSampleDequeueBlobs:1-*:2-*: WeightedSigmoidCrossEntropyWithLogits:3:1:
While:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Wngrad:4:2-4:0>0,1>1
"""
