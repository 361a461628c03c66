# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's operators, one word each: ``Name:inputs:outputs:in-place``.

A count is ``2``, ``1-3``, ``1-*``, ``1|3`` or ``2n+1`` (3, 5, 7, ...). In-place is a list of pairs
``input>output`` that may be one blob, or must be if followed by ``!``; ``1>0*`` stands for 1>0,
2>1, and so on. Printed by tests/conformance/operators/record_schemas.py from the operators
registered in PyTorch 1.8.1, for the first six inputs and four outputs.
"""

__all__ = ["TABLE"]

TABLE = """
NCCLAllGather:1-16:1-16: NCCLAllreduce:1-16:1-16:0>0* NCCLBroadcast:1-16:1-16:0>0*!
NCCLReduce:1-16:1:0>0,1>0,2>0,3>0,4>0,5>0 NCCLReduceScatter:1-16:1-16:
Dequantize:1:1: Int8BatchMatMul:2:1: Int8ConvPackWeight:1-2:1: Int8ElementwiseLinear:3:1:
Int8FCRelu:3-4:1: Int8Gather:2:1: Int8GroupNorm:3:1|3: Int8LSTMUnit:4-5:2: Int8Mul:2:1:
Int8SpatialBN:5:1: Int8SpatialBNRelu:5:1: Int8Tanh:1:1: Quantize:1-2:1: SumRelu:1-*:1:0>0
APMeter:2:1: ATen:0-*:0-*: Accumulate:1:1: AccumulateHistogram:1:2: Alias:1:1: AliasWithName:1:1:0>0
Allgather:2-*:1: Allreduce:2-*:1-*:1>0*! Append:2:1:0>0! AsyncNetBarrier:1-*:1-*:0>0*
AtomicAppend:3-*:1-*:1>0* AtomicFetchAdd64:3:2:1>0 AtomicFetchAdd:3:2:1>0 AtomicIter:2:1:1>0!
AveragePut:1:0: Barrier:1:0-*: Broadcast:2-*:1-*:1>0*! CheckAtomicBool:1:1: CheckCounterDone:1:1:
CheckDatasetConsistency:1-*:0: Checkpoint:1-*:0: CloneCommonWorld:1:1: CloseBlobsQueue:1:0:
CloseRebatchingQueue:1:0: CollectTensor:2n:1-*:0>0*! ComputeOffset:1-*:1: ConcatTensorVector:1:1:
ConditionalSetAtomicBool:2:0: CountDown:1:1: CountUp:1:1: CreateAtomicBool:0:1:
CreateBlobsQueue:0:1: CreateBlobsQueueDB:1:1: CreateCommonWorld:0-1:1: CreateCounter:0:1:
CreateDB:0:1: CreateMap:0:1: CreateMutex:0:1: CreateRebatchingQueue:0:1: CreateScope:0:1:
CreateTensorVector:0:1: CreateTextFileReader:0:1: CreateTreeCursor:0:1: DBExists:0:1:
DataCouple:0-*:0-*:0>0*! DequeueBlobs:1:1-*: DequeueRebatchingQueue:1:1-*:
DestroyCommonWorld:1:1:0>0!
Do:1-*:1-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
EnqueueBlobs:2-*:1-*:1>0*! EnqueueRebatchingQueue:2-*:0:
Fail:0:0: FbFCPacked:3:1: FbGemmPack:1:1:0>0
FbGemmPackTranspose:1:1:0>0 FeedBlob:0:1: FileStoreHandlerCreate:0:1: Free:1-*:1-*:0>0*!
GatherRangesToDense:2-3:1-*: GetAllBlobNames:0:1: GetCursorOffset:1:1: GetGPUMemoryUsage:0:1:
HasScope:1:1:
If:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
IncrementPut:1:0: IndexFreeze:1:1:0>0! IndexGet:2:1: IndexLoad:2:1:0>0! IndexSize:1:1:
IndexStore:1:1: Int8Add:2:1:0>0,1>0 Int8AddRelu:2:1:0>0,1>0 Int8AveragePool:1:1:
Int8AveragePoolRelu:1:1: Int8ChannelShuffle:1:1: Int8Concat:1-*:1-2: Int8Conv:2-3:1:
Int8ConvRelu:2-3:1: Int8ConvTranspose:2-3:1: Int8Dequantize:1:1: Int8FC:3-4:1-4:
Int8FCPackWeight:1-2:1-2: Int8Flatten:1:1: Int8GenQuantParams:2:1: Int8GivenIntTensorFill:0:1:
Int8GivenTensorFill:0:1: Int8LeakyRelu:1:1:0>0 Int8MaxPool:1:1: Int8MaxPoolRelu:1:1:
Int8Quantize:1-2:1: Int8Relu:1:1:0>0 Int8Reshape:1-2:2:0>0 Int8ResizeNearest:1:1: Int8RoIAlign:2:1:
Int8Sigmoid:1:1: Int8Slice:1-3:1: Int8Softmax:1:1: Int8Sum:1-*:1:0>0,1>0 Int8SumRelu:1-*:1:0>0,1>0
Int8Transpose:1:1: IntIndexCreate:0:1: Iter:0-1:1:0>0! KeyValueToMap:2:1:
LastNWindowCollector:3-5:2-3:0>0!,1>1!,4>2! Load:0-*:0-*: LongIndexCreate:0:1: MapToKeyValue:1:2:
ONNXWhile:2-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
Onnxifi:0-*:0-*: PackRecords:1-*:1: Print:1:0:
Python:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
PythonDLPack:0-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
ReadNextBatch:1-*:1-*: ReadRandomBatch:1-*:1-*: ReceiveTensor:2|4:3:1>0!,2>1,3>2
RecurrentNetwork:1-*:2-*: RecurrentNetworkBlobFetcher:1:1: Reduce:2:1: ReduceScatter:2-*:1-*:1>0*!
ReservoirSampling:4|7:2|4:0>0!,1>1!,5>2!,6>3! ResetCounter:1:0-1: ResetCursor:1:0:
RetrieveCount:1:1: SafeDequeueBlobs:1:2-*: SafeEnqueueBlobs:2-*:2-*:1>0*! Save:1-*:0:
SendTensor:2|4:0: Snapshot:0-*:0-*: SortAndShuffle:1-*:1: SparseToDenseMask:3-4:1-2:
StatRegistryCreate:0:1: StatRegistryExport:0-1:3: StatRegistryUpdate:2-3:0: StdDevPut:1:0:
StoreAdd:1:1: StoreGet:1:1: StoreSet:2:0: StoreWait:1-2:0: StringIndexCreate:0:1: Summarize:1:0-1:
TensorProtosDBInput:1:1-*: TensorVectorSize:1:1: TextFileReaderRead:1:1-*: TimerBegin:0:1:
TimerEnd:1:0: TimerGet:1:1: TimerGetAndEnd:1:1: TrimDataset:1-*:1-*:0>0*! UnPackRecords:1-*:1-*:
UnsafeCoalesce:0-*:1-*:0>0* WallClockTime:0:1: WeightedSampleDequeueBlobs:1-*:2-*:
While:1-*:0-*:0>0,0>1,0>2,0>3,1>0,1>1,1>2,1>3,2>0,2>1,2>2,2>3,3>0,3>1,3>2,3>3,4>0,4>1,4>2,4>3,5>0,5>1,5>2,5>3
rnn_internal_accumulate_gradient_input:3:1-*:2>0! rnn_internal_apply_link:2:2:1>1!
"""
