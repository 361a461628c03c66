# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of each operator type, as patterns; `patterns` explains the notation.

Gradients that no pattern expresses are in `makers`.
Follows the gradient makers of caffe2/operators, PyTorch 1.8.1, which were called for each type.
"""

__all__ = ["NO_GRADIENT", "PATTERNS", "UNDEFINED", "UNIMPLEMENTED"]

PATTERNS = {
    "NanCheck g0 > 0": "NanCheck",
    "$Gradient i0 g0 i3? > 1": "SparseToDenseMask",
    "$Gradient i0 i1 g0 > 0": "RoIAlign RoIAlignRotated",
    "$Gradient i0 g0 o1 > 0": "MaxPoolWithIndex",
    "$Gradient i0 i1 o1 g0 > 0": "RoIPool",
    "$Gradient i0 i1 i2 i4 o1 o2 o3 g0 > 0 1 2": "TTSparseLengthsSum",
    "$Gradient i0 i1 i2 i3 o1 g0 > 0 1 2 g1": "HSoftmax",
}

# Types whose inputs have no gradients: back-propagation ends at them without an error.
NO_GRADIENT = """
AtomicIter CloseBlobsQueue CloseRebatchingQueue ConstantFill CreateBlobsQueue CreateDB
CreateRebatchingQueue CreateTextFileReader DequeueBlobs DequeueRebatchingQueue DiagonalFill
EnqueueBlobs EnqueueRebatchingQueue Float16ConstantFill Float16UniformFill GatherRangesToDense
GaussianFill GivenTensorBoolFill GivenTensorByteStringToUInt8Fill GivenTensorDoubleFill
GivenTensorFill GivenTensorInt16Fill GivenTensorInt64Fill GivenTensorIntFill GivenTensorStringFill
InferenceLSTM IntIndexCreate Iter LengthsRangeFill Load LongIndexCreate MSRAFill Range RangeFill
SafeDequeueBlobs SafeEnqueueBlobs SparseDropoutWithReplacement StringIndexCreate TensorProtosDBInput
TextFileReaderRead UniformFill UniformIntFill UniqueUniformFill WeightedSampleDequeueBlobs
XavierFill
"""

# Types for which asking for a gradient is an error.
UNDEFINED = """
APMeter Accumulate AccumulateHistogram Allgather Allreduce Append AsyncNetBarrier AtomicAppend
AtomicFetchAdd BBoxTransform Barrier BoxWithNMSLimit Broadcast CheckAtomicBool
CheckDatasetConsistency Checkpoint CloneCommonWorld CollectAndDistributeFpnRpnProposals
CollectRpnProposals CollectTensor ComputeOffset ConcatTensorVector ConditionalSetAtomicBool
CountDown CountUp CreateAtomicBool CreateBlobsQueueDB CreateCommonWorld CreateCounter CreateMutex
CreateScope CreateTensorVector CreateTreeCursor DBExists DestroyCommonWorld DistributeFpnProposals
EnforceFinite Fail FeedBlob FindDuplicateElements Free GenerateProposals GenerateProposalsCPP
HSoftmaxSearch HasScope HeatmapMaxKeypoint IndexFreeze IndexLoad IndexSize IndexStore IsMemberOf
LastNWindowCollector LogFatal NCCLAllGather NCCLAllreduce NCCLBroadcast NCCLReduce NCCLReduceScatter
PackRecords Print RMACRegions ReadNextBatch ReadRandomBatch ReceiveTensor
RecurrentNetworkBlobFetcher Reduce ReduceScatter ReservoirSampling ResetCounter ResetCursor
RetrieveCount Save SendTensor Snapshot StringEndsWith StringEquals StringJoin StringPrefix
StringStartsWith StringSuffix Summarize TensorVectorSize ThrowChildThreadException ThrowException
UnPackRecords WallClockTime WeightedSample YellowFin
"""

# Types whose gradient Caffe2 declares, but does not implement.
UNIMPLEMENTED = """
TT
"""
