# SPDX-License-Identifier: Apache-2.0
"""Named blobs: feed, fetch, and workspaces to keep them apart.

The functions act on the current workspace, which is one for the whole process: a switch in one
thread is a switch for all, as in Caffe2.

Follows caffe2/python/workspace.py and caffe2/python/pybind_state.cc, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import workspace
>>> workspace.FeedBlob("x", np.arange(3))
True
>>> workspace.FetchBlob("x")
array([0, 1, 2])
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.caffe2 import scope, utils
from bridge.caffe2.base.global_init import GlobalInit
from bridge.caffe2.base.lazy import lazily
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.definitions.operator_types import RegisteredOperators
from bridge.caffe2.definitions.tracebacks import CallWithExceptionIntercept, operator_tracebacks
from bridge.caffe2.workspaces.background import RunPlanInBackground
from bridge.caffe2.workspaces.benchmark import (
    BenchmarkNet,
    BenchmarkNetOnce,
    ClearGlobalNetObserver,
    GetStats,
)
from bridge.caffe2.workspaces.blob_functions import (
    Blobs,
    CreateBlob,
    DeserializeBlob,
    FetchBlobs,
    FetchInt8Blob,
    FetchInt8BlobRealVal,
    GetBlobNUMANode,
    GetBlobSizeBytes,
    HasBlob,
    ResetBlob,
    SerializeBlob,
    blobs,
)
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob, FetchTorch
from bridge.caffe2.workspaces.immediate import (
    FeedImmediate,
    FetchImmediate,
    ImmediateBlobs,
    IsImmediate,
    RunOperatorImmediate,
    StartImmediate,
    StopImmediate,
)
from bridge.caffe2.workspaces.names import (
    GetNameScope,
    GetNetName,
    StringifyBlobName,
    StringifyNetName,
    StringifyProto,
)
from bridge.caffe2.workspaces.nets import CreateNet, DeleteNet, Nets, RunNet, RunNetOnce
from bridge.caffe2.workspaces.plans import RunPlan
from bridge.caffe2.workspaces.predictor import Predictor
from bridge.caffe2.workspaces.random_inputs import FillRandomNetworkInputs
from bridge.caffe2.workspaces.run_once import RunOperatorOnce
from bridge.caffe2.workspaces.running import RunOperatorMultiple, RunOperatorsOnce
from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes
from bridge.caffe2.workspaces.switching import (
    CurrentWorkspace,
    ResetWorkspace,
    RootFolder,
    SwitchWorkspace,
    WorkspaceGuard,
    Workspaces,
)
from bridge.caffe2.workspaces.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import c_extension as C
    from bridge.caffe2.base.hardware import (
        GetCUDAVersion,
        GetCuDNNVersion,
        GetDeviceProperties,
        GetGPUMemoryInfo,
        GetGpuPeerAccessPattern,
        GetNumNUMANodes,
        IsNUMAEnabled,
        NumCudaDevices,
        NumGpuDevices,
        has_cuda_support,
        has_gpu_support,
        has_hip_support,
        is_asan,
    )
    from bridge.caffe2.proto import caffe2_pb2

__all__ = [
    "BenchmarkNet",
    "BenchmarkNetOnce",
    "Blob",
    "Blobs",
    "C",
    "CallWithExceptionIntercept",
    "ClearGlobalNetObserver",
    "CreateBlob",
    "CreateNet",
    "CurrentWorkspace",
    "DeleteNet",
    "DeserializeBlob",
    "FeedBlob",
    "FeedImmediate",
    "FetchBlob",
    "FetchBlobs",
    "FetchImmediate",
    "FetchInt8Blob",
    "FetchInt8BlobRealVal",
    "FetchTorch",
    "FillRandomNetworkInputs",
    "GetBlobNUMANode",
    "GetBlobSizeBytes",
    "GetCUDAVersion",
    "GetCuDNNVersion",
    "GetDeviceProperties",
    "GetGPUMemoryInfo",
    "GetGpuPeerAccessPattern",
    "GetNameScope",
    "GetNetName",
    "GetNumNUMANodes",
    "GetStats",
    "GlobalInit",
    "GpuDeviceType",
    "HasBlob",
    "ImmediateBlobs",
    "InferShapesAndTypes",
    "Int8Tensor",
    "Int8TensorCPU",
    "IsImmediate",
    "IsNUMAEnabled",
    "Nets",
    "NumCudaDevices",
    "NumGpuDevices",
    "Predictor",
    "RegisteredOperators",
    "ResetBlob",
    "ResetWorkspace",
    "RootFolder",
    "RunNet",
    "RunNetOnce",
    "RunOperatorImmediate",
    "RunOperatorMultiple",
    "RunOperatorOnce",
    "RunOperatorsOnce",
    "RunPlan",
    "RunPlanInBackground",
    "SerializeBlob",
    "StartImmediate",
    "StopImmediate",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "SwitchWorkspace",
    "Workspace",
    "WorkspaceGuard",
    "Workspaces",
    "blobs",
    "caffe2_pb2",
    "has_cuda_support",
    "has_gpu_support",
    "has_hip_support",
    "is_asan",
    "operator_tracebacks",
    "scope",
    "utils",
]

# Caffe2's number of the device type of GPUs, whether or not there is one; see NumGpuDevices.
GpuDeviceType = 1

# Loaded at first use, since they load torch or protobuf.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.base.hardware": (
            "GetCUDAVersion GetCuDNNVersion GetDeviceProperties GetGPUMemoryInfo "
            "GetGpuPeerAccessPattern GetNumNUMANodes IsNUMAEnabled NumCudaDevices NumGpuDevices "
            "has_cuda_support has_gpu_support has_hip_support is_asan"
        ),
        "bridge.caffe2.c_extension": "C",
        "bridge.caffe2.proto.caffe2_pb2": "caffe2_pb2",
    },
)
