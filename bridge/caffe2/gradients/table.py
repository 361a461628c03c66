# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of each operator type, as patterns; `patterns` explains the notation.

Gradients that no pattern expresses are in `makers`.
Follows the gradient makers of caffe2/operators, PyTorch 1.8.1, which were called for each type.
"""

__all__ = ["NO_GRADIENT", "PATTERNS", "UNDEFINED", "UNIMPLEMENTED"]

PATTERNS = {
    "$Gradient i0 g0 i3? > 1": "SparseToDenseMask",
}

# Types whose inputs have no gradients: back-propagation ends at them without an error.
NO_GRADIENT = """
AtomicIter CloseBlobsQueue CloseRebatchingQueue CreateBlobsQueue CreateDB CreateRebatchingQueue
CreateTextFileReader DequeueBlobs DequeueRebatchingQueue EnqueueBlobs EnqueueRebatchingQueue
GatherRangesToDense IntIndexCreate Iter Load LongIndexCreate SafeDequeueBlobs
SafeEnqueueBlobs StringIndexCreate TensorProtosDBInput TextFileReaderRead WeightedSampleDequeueBlobs
"""

# Types for which asking for a gradient is an error.
UNDEFINED = """
APMeter Accumulate AccumulateHistogram Allgather Allreduce Append AsyncNetBarrier AtomicAppend
AtomicFetchAdd Barrier Broadcast CheckAtomicBool CheckDatasetConsistency Checkpoint CloneCommonWorld
CollectTensor ComputeOffset ConcatTensorVector ConditionalSetAtomicBool CountDown CountUp
CreateAtomicBool CreateBlobsQueueDB CreateCommonWorld CreateCounter CreateMutex CreateScope
CreateTensorVector CreateTreeCursor DBExists DestroyCommonWorld Fail FeedBlob Free
HasScope IndexFreeze IndexLoad IndexSize IndexStore LastNWindowCollector NCCLAllGather
NCCLAllreduce NCCLBroadcast NCCLReduce NCCLReduceScatter PackRecords Print ReadNextBatch
ReadRandomBatch ReceiveTensor RecurrentNetworkBlobFetcher Reduce ReduceScatter ReservoirSampling
ResetCounter ResetCursor RetrieveCount Save SendTensor Snapshot Summarize TensorVectorSize
UnPackRecords WallClockTime
"""

# Types whose gradient Caffe2 declares, but does not implement.
UNIMPLEMENTED = """

"""
