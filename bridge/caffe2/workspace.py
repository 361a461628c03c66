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

from bridge.c10.immortal import immortal as _immortal
from bridge.lazy import lazily

# Loaded at first use, all but those called most: one operator needs no nets, others load torch or
# protobuf.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.base.hardware": (
            "GetCUDAVersion GetCuDNNVersion GetDeviceProperties GetGPUMemoryInfo "
            "GetGpuPeerAccessPattern GetNumNUMANodes GpuDeviceType IsNUMAEnabled NumCudaDevices "
            "NumGpuDevices has_cuda_support has_gpu_support has_hip_support is_asan"
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
        "bridge.caffe2.workspaces.plan_runs": "RunPlan RunPlanInBackground",
        "bridge.caffe2.workspaces.benchmark": (
            "BenchmarkNet BenchmarkNetOnce ClearGlobalNetObserver FillRandomNetworkInputs GetStats"
        ),
        "bridge.caffe2.workspaces.immediate": (
            "FeedImmediate FetchImmediate ImmediateBlobs IsImmediate RunOperatorImmediate "
            "StartImmediate StopImmediate _root_folder=root_folder"
        ),
        "bridge.caffe2.workspaces.name_text": (
            "GetNameScope GetNetName StringifyBlobName StringifyNetName StringifyProto"
        ),
        "bridge.caffe2.workspaces.named_nets": "CreateNet DeleteNet Nets RunNet RunNetOnce",
        "bridge.caffe2.workspaces.operator_cost": "GetOperatorCost",
        "bridge.caffe2.workspaces.predictor": "Predictor",
        "bridge.caffe2.workspaces.run_once": "RunOperatorMultiple RunOperatorOnce RunOperatorsOnce",
        "bridge.caffe2.workspaces.shape_inference": "InferShapesAndTypes",
        "bridge.caffe2.workspaces.transforms": "ApplyTransform ApplyTransformIfFaster",
        "bridge.caffe2.proto.caffe2_pb2": "caffe2_pb2",
        "bridge.caffe2.blobs.blob": "Blob",
        "bridge.caffe2.blobs.int8": "Int8Tensor Int8TensorCPU",
        "bridge.caffe2.definitions.operator_types": "RegisteredOperators",
        "bridge.caffe2.workspaces.feed_fetch": "FeedBlob FetchBlob FetchTorch",
        "bridge.caffe2.workspaces.workspace": (
            "CurrentWorkspace ResetWorkspace RootFolder SwitchWorkspace Workspace WorkspaceGuard "
            "Workspaces"
        ),
    },
    now="Blob FeedBlob FetchBlob FetchTorch RegisteredOperators RunOperatorOnce Workspace",
)


def __getattr__(name: str) -> object:
    # Caffe2 has no public name for it, so scripts read this one.
    return _get("_root_folder")() if name == "_immediate_root_folder" else _get(name)


_immortal(globals())
