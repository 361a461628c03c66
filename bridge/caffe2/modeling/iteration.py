# SPDX-License-Identifier: Apache-2.0
"""The blob that counts training iterations.

Follows BuildUniqueMutexIter, caffe2/python/utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.definitions.scope import DeviceScope

# The blobs that hold the number of iterations, and the mutex that guards it.
OPTIMIZER_ITERATION_NAME = "optimizer_iteration"
ITERATION_MUTEX_NAME = "iteration_mutex"


def BuildUniqueMutexIter(
    init_net: Any, net: Any, iter: Any = None, iter_mutex: Any = None, iter_val: int = 0
) -> Any:
    """Return a reference to the blob that counts iterations, after adding it if it is missing.

    `init_net` then creates the count, an int64 on the CPU that starts at `iter_val`, and its mutex;
    `net` increments the count. iter, iter_mutex: other names for these two blobs.
    """
    count = OPTIMIZER_ITERATION_NAME if iter is None else iter
    if init_net.BlobIsDefined(count):
        return init_net.GetBlobRef(count)
    with DeviceScope(DeviceOption(0, extra_info=["device_type_override:cpu"])):
        blob = init_net.ConstantFill([], count, shape=[1], value=iter_val, dtype=DataType.INT64)
        mutex = init_net.CreateMutex([], [iter_mutex or ITERATION_MUTEX_NAME])
        net.AtomicIter([mutex, blob], [blob])
    return blob
