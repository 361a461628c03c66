# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.workspace``: named blobs, and operators, nets and plans on them.

The functions use the current workspace, which is one for the whole process: a switch in one thread
is a switch for all, as in Caffe2. Names are `str`, `bytes` or a BlobReference.

Follows caffe2/python/workspace.py and caffe2/python/pybind_state.cc, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> workspace.ResetWorkspace()
True
>>> workspace.FeedBlob("x", np.arange(3, dtype=np.float32))
True
>>> workspace.RunOperatorOnce(core.CreateOperator("Negative", "x", "y"))
True
>>> workspace.FetchBlob("y")
array([-0., -1., -2.], dtype=float32)
>>> type(workspace.FetchTorch("y")), workspace.Blobs()
(<class 'torch.Tensor'>, ['x', 'y'])

Where the operators of a net were added, for tracebacks:

>>> net = core.Net("traced_here")
>>> _ = net.Relu("x", "y")
>>> file, line, function = workspace.operator_tracebacks["traced_here"][0][0]
>>> workspace.CallWithExceptionIntercept(workspace.RunNetOnce, lambda: 0, "traced_here", net)
True

The machine, as torch sees it:

>>> workspace.NumGpuDevices() == workspace.NumCudaDevices()
True
>>> workspace.has_gpu_support == workspace.has_cuda_support == (workspace.NumGpuDevices() > 0)
True
>>> workspace.has_hip_support, workspace.is_asan
(False, False)
>>> workspace.GpuDeviceType == workspace.caffe2_pb2.CUDA
True
>>> (workspace.GetCUDAVersion() > 0) == workspace.has_cuda_support
True
>>> workspace.has_cuda_support or (
...     workspace.GetCuDNNVersion(),
...     workspace.GetDeviceProperties(0),
...     workspace.GetGPUMemoryInfo(),
...     len(workspace.GetGpuPeerAccessPattern()),
... ) == (0, None, None, 0)
True
>>> workspace.IsNUMAEnabled(), workspace.GetNumNUMANodes()
(False, -1)

A quantized tensor, which `FetchInt8Blob` returns:

>>> workspace.Int8Tensor(np.zeros(1, np.uint8), scale=0.5, zero_point=10).scale
0.5

Other modules of Caffe2, under the names that it has here:

>>> from bridge.caffe2 import scope, utils
>>> workspace.scope is scope, workspace.utils is utils
(True, True)
>>> workspace.C.num_cuda_devices is workspace.NumCudaDevices
True
>>> workspace.GlobalInit(["caffe2", "--caffe2_keep_on_shrink=1"])
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.immortal import immortal as _immortal
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.definitions.operator_types import RegisteredOperators
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob, FetchTorch
from bridge.caffe2.workspaces.run_once import RunOperatorOnce
from bridge.caffe2.workspaces.workspace import Workspace
from bridge.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import c_extension as C
    from bridge.caffe2 import utils
    from bridge.caffe2.base.global_init import GlobalInit
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
    from bridge.caffe2.definitions import scope
    from bridge.caffe2.definitions.tracebacks import CallWithExceptionIntercept, operator_tracebacks
    from bridge.caffe2.proto import caffe2_pb2
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
    from bridge.caffe2.workspaces.immediate import (
        FeedImmediate,
        FetchImmediate,
        ImmediateBlobs,
        IsImmediate,
        RunOperatorImmediate,
        StartImmediate,
        StopImmediate,
    )
    from bridge.caffe2.workspaces.name_text import (
        GetNameScope,
        GetNetName,
        StringifyBlobName,
        StringifyNetName,
        StringifyProto,
    )
    from bridge.caffe2.workspaces.named_nets import CreateNet, DeleteNet, Nets, RunNet, RunNetOnce
    from bridge.caffe2.workspaces.operator_cost import GetOperatorCost
    from bridge.caffe2.workspaces.operator_runs import RunOperatorMultiple, RunOperatorsOnce
    from bridge.caffe2.workspaces.plan_runs import RunPlan
    from bridge.caffe2.workspaces.predictor import Predictor
    from bridge.caffe2.workspaces.random_inputs import FillRandomNetworkInputs
    from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes
    from bridge.caffe2.workspaces.switching import (
        CurrentWorkspace,
        ResetWorkspace,
        RootFolder,
        SwitchWorkspace,
        WorkspaceGuard,
        Workspaces,
    )
    from bridge.caffe2.workspaces.transforms import ApplyTransform, ApplyTransformIfFaster

__all__ = [
    "ApplyTransform",
    "ApplyTransformIfFaster",
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
    "GetOperatorCost",
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

# Loaded at first use: one operator needs no nets, others load torch or protobuf.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.base.hardware": (
            "GetCUDAVersion GetCuDNNVersion GetDeviceProperties GetGPUMemoryInfo "
            "GetGpuPeerAccessPattern GetNumNUMANodes IsNUMAEnabled NumCudaDevices NumGpuDevices "
            "has_cuda_support has_gpu_support has_hip_support is_asan"
        ),
        "bridge.caffe2.c_extension": "C",
        "bridge.caffe2.base.global_init": "GlobalInit",
        "bridge.caffe2.workspaces.blob_functions": (
            "Blobs CreateBlob DeserializeBlob FetchBlobs FetchInt8Blob FetchInt8BlobRealVal "
            "GetBlobNUMANode GetBlobSizeBytes HasBlob ResetBlob SerializeBlob blobs"
        ),
        "bridge.caffe2.definitions.scope": "scope",
        "bridge.caffe2.utils": "utils",
        "bridge.caffe2.definitions.tracebacks": "CallWithExceptionIntercept operator_tracebacks",
        "bridge.caffe2.workspaces.background": "RunPlanInBackground",
        "bridge.caffe2.workspaces.benchmark": (
            "BenchmarkNet BenchmarkNetOnce ClearGlobalNetObserver GetStats"
        ),
        "bridge.caffe2.workspaces.immediate": (
            "FeedImmediate FetchImmediate ImmediateBlobs IsImmediate RunOperatorImmediate "
            "StartImmediate StopImmediate root_folder"
        ),
        "bridge.caffe2.workspaces.name_text": (
            "GetNameScope GetNetName StringifyBlobName StringifyNetName StringifyProto"
        ),
        "bridge.caffe2.workspaces.named_nets": "CreateNet DeleteNet Nets RunNet RunNetOnce",
        "bridge.caffe2.workspaces.operator_cost": "GetOperatorCost",
        "bridge.caffe2.workspaces.plan_runs": "RunPlan",
        "bridge.caffe2.workspaces.predictor": "Predictor",
        "bridge.caffe2.workspaces.random_inputs": "FillRandomNetworkInputs",
        "bridge.caffe2.workspaces.operator_runs": "RunOperatorMultiple RunOperatorsOnce",
        "bridge.caffe2.workspaces.shape_inference": "InferShapesAndTypes",
        "bridge.caffe2.workspaces.switching": (
            "CurrentWorkspace ResetWorkspace RootFolder SwitchWorkspace WorkspaceGuard Workspaces"
        ),
        "bridge.caffe2.workspaces.transforms": "ApplyTransform ApplyTransformIfFaster",
        "bridge.caffe2.proto.caffe2_pb2": "caffe2_pb2",
    },
)


if not TYPE_CHECKING:  # type checkers would take any name for one of these

    def __getattr__(name: str) -> Any:
        # Caffe2 has no public name for it, so scripts read this one.
        return _get("root_folder")() if name == "_immediate_root_folder" else _get(name)


_immortal(globals())
