# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python._import_c_extension``, the module ``workspace.C``.

Those that scripts use; most are the functions of `workspace` and `core` under other names. Follows
caffe2/python/pybind_state.cc, PyTorch 1.8.1.

>>> from bridge.caffe2 import workspace
>>> workspace.C.create_blob("x"), workspace.C.has_blob("x"), workspace.C.local_blobs()
(True, True, ['x'])
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.global_init import GlobalInit as global_init
from bridge.caffe2.base.hardware import GetCUDAVersion as get_cuda_version
from bridge.caffe2.base.hardware import GetCuDNNVersion as get_cudnn_version
from bridge.caffe2.base.hardware import GetDeviceProperties as get_device_properties
from bridge.caffe2.base.hardware import GetNumNUMANodes as get_num_numa_nodes
from bridge.caffe2.base.hardware import IsNUMAEnabled as is_numa_enabled
from bridge.caffe2.base.hardware import NumCudaDevices as num_cuda_devices
from bridge.caffe2.base.hardware import has_cuda_support, has_gpu_support, has_hip_support, is_asan
from bridge.caffe2.base.messages import as_message as _as_message
from bridge.caffe2.base.names import DummyName, name_of
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor as TensorCPU
from bridge.caffe2.core.memory_sharing import (
    compute_blob_recycling_for_dag as memonger_compute_blob_recycling_for_dag,
)
from bridge.caffe2.core.memory_sharing import (
    optimize_inference_net as memonger_optimize_inference_net,
)
from bridge.caffe2.definitions.engines import SetEnginePref as set_engine_pref
from bridge.caffe2.definitions.engines import SetGlobalEnginePref as set_global_engine_pref
from bridge.caffe2.definitions.engines import SetOpEnginePref as set_op_engine_pref
from bridge.caffe2.definitions.engines import SetPerOpEnginePref as set_per_op_engine_pref
from bridge.caffe2.definitions.op_schema import OpSchema
from bridge.caffe2.definitions.operator_types import RegisteredOperators as registered_operators
from bridge.caffe2.definitions.operator_types import nearby_names as nearby_opnames
from bridge.caffe2.definitions.operator_types import registry_key as op_registry_key
from bridge.caffe2.execution.observers import Observer
from bridge.caffe2.execution.runnable_net import RunnableNet as Net
from bridge.caffe2.files.handles import DB, Cursor, Mode, Transaction, create_db, registered_dbs
from bridge.caffe2.legacy.onnx_export import export_to_onnx, support_onnx_export
from bridge.caffe2.legacy.onnx_import import Caffe2Backend
from bridge.caffe2.workspaces.background import BackgroundPlan
from bridge.caffe2.workspaces.background import RunPlanInBackground as run_plan_in_background
from bridge.caffe2.workspaces.benchmark import BenchmarkNet as benchmark_net
from bridge.caffe2.workspaces.benchmark import BenchmarkNetOnce as benchmark_net_once
from bridge.caffe2.workspaces.benchmark import ClearGlobalNetObserver as clear_global_net_observer
from bridge.caffe2.workspaces.benchmark import GetStats as get_stats
from bridge.caffe2.workspaces.blob_functions import Blobs as blobs
from bridge.caffe2.workspaces.blob_functions import CreateBlob as create_blob
from bridge.caffe2.workspaces.blob_functions import DeserializeBlob as deserialize_blob
from bridge.caffe2.workspaces.blob_functions import GetBlobNUMANode as get_blob_numa_node
from bridge.caffe2.workspaces.blob_functions import GetBlobSizeBytes as get_blob_size_bytes
from bridge.caffe2.workspaces.blob_functions import HasBlob as has_blob
from bridge.caffe2.workspaces.blob_functions import ResetBlob as reset_blob
from bridge.caffe2.workspaces.blob_functions import SerializeBlob as serialize_blob
from bridge.caffe2.workspaces.current import current as _current
from bridge.caffe2.workspaces.feed_fetch import FeedBlob as feed_blob
from bridge.caffe2.workspaces.named_blobs import fetch_named
from bridge.caffe2.workspaces.named_nets import CreateNet as _CreateNet
from bridge.caffe2.workspaces.named_nets import DeleteNet as _DeleteNet
from bridge.caffe2.workspaces.named_nets import Nets as nets
from bridge.caffe2.workspaces.named_nets import RunNet as run_net
from bridge.caffe2.workspaces.named_nets import RunNetOnce as run_net_once
from bridge.caffe2.workspaces.named_nets import net_named as _net_named
from bridge.caffe2.workspaces.native_names import fetched
from bridge.caffe2.workspaces.operator_cost import GetOperatorCost as get_operator_cost
from bridge.caffe2.workspaces.operator_runs import RunOperatorMultiple as run_operator_multiple
from bridge.caffe2.workspaces.plan_runs import RunPlan as run_plan
from bridge.caffe2.workspaces.predictor import Predictor
from bridge.caffe2.workspaces.run_once import RunOperatorOnce as run_operator_once
from bridge.caffe2.workspaces.switching import CurrentWorkspace as current_workspace
from bridge.caffe2.workspaces.switching import ResetWorkspace as reset_workspace
from bridge.caffe2.workspaces.switching import RootFolder as root_folder
from bridge.caffe2.workspaces.switching import SwitchWorkspace as switch_workspace
from bridge.caffe2.workspaces.switching import Workspaces as workspaces
from bridge.caffe2.workspaces.transforms import (
    ApplyTransform,
    ApplyTransformIfFaster,
    transform_exists,
)
from bridge.caffe2.workspaces.transforms import optimize_for_mkldnn as _optimize_for_mkldnn
from bridge.caffe2.workspaces.transforms import transform_bytes as run_transform
from bridge.caffe2.workspaces.transforms import transform_bytes as run_workspace_transform
from bridge.caffe2.workspaces.workspace import Workspace as _Workspace

__all__ = [
    "DB",
    "BackgroundPlan",
    "Blob",
    "Caffe2Backend",
    "Cursor",
    "DummyName",
    "Mode",
    "Net",
    "Observer",
    "OpSchema",
    "Predictor",
    "TensorCPU",
    "Transaction",
    "Workspace",
    "add_observer_to_net",
    "apply_transform",
    "apply_transform_if_faster",
    "benchmark_net",
    "benchmark_net_once",
    "blobs",
    "builtin_cpu_supports_avx2",
    "clear_global_net_observer",
    "create_blob",
    "create_child_workspace",
    "create_db",
    "create_net",
    "current_workspace",
    "define_caffe2_no_operator_schema",
    "delete_net",
    "deserialize_blob",
    "feed_blob",
    "export_to_onnx",
    "fetch_blob",
    "get_blob_numa_node",
    "get_blob_size_bytes",
    "get_build_options",
    "get_cuda_version",
    "get_cudnn_version",
    "get_device_properties",
    "get_num_numa_nodes",
    "get_operator_cost",
    "get_stats",
    "global_init",
    "has_blob",
    "has_cuda_support",
    "has_gpu_support",
    "has_hip_support",
    "has_mkldnn",
    "is_asan",
    "is_numa_enabled",
    "local_blobs",
    "nearby_opnames",
    "nets",
    "num_cuda_devices",
    "num_observers_on_net",
    "op_registry_key",
    "registered_dbs",
    "registered_operators",
    "remove_observer_from_net",
    "reset_blob",
    "reset_workspace",
    "root_folder",
    "run_net",
    "run_net_once",
    "run_operator_multiple",
    "run_operator_once",
    "run_plan",
    "run_plan_in_background",
    "run_transform",
    "run_workspace_transform",
    "serialize_blob",
    "set_engine_pref",
    "set_global_engine_pref",
    "set_op_engine_pref",
    "set_per_op_engine_pref",
    "support_onnx_export",
    "switch_workspace",
    "transform_exists",
    "transform_fuseConvBN",
    "transform_fuseNNPACKConvRelu",
    "transform_optimizeForMKLDNN",
    "use_mkldnn",
    "use_rocm",
    "use_trt",
    "workspace_transform_exists",
    "workspaces",
    "memonger_compute_blob_recycling_for_dag",
    "memonger_optimize_inference_net",
]

# Options that Caffe2 can be built with. Operators run on torch, which uses oneDNN (once MKL-DNN)
# where it is faster; the device types MKLDNN and IDEEP are the CPU.
define_caffe2_no_operator_schema = False
has_mkldnn = True
use_mkldnn = True
use_rocm = False
use_trt = False


class Workspace(_Workspace):
    """A `bridge.caffe2.workspace.Workspace` whose `fetch_blob` describes what is no tensor."""

    __slots__ = ()

    def fetch_blob(self, name: Any) -> Any:
        """Return a copy of the value of the blob `name`, as the function `fetch_blob` does."""
        return fetched(super().fetch_blob, name, self)


def fetch_blob(name: Any) -> Any:
    """Return a copy of the value of the blob `name`, of a quantized tensor a tuple.

    Of a blob with neither a tensor nor a string, return a description, as `FetchBlob` of scripts.
    """
    return fetched(lambda one: fetch_named(_current.workspace, one, "fetch_blob"), name)


def builtin_cpu_supports_avx2() -> bool:
    """Return whether the processor has AVX2, and torch uses it."""
    from torch.backends.cpu import get_cpu_capability

    return get_cpu_capability() in ("AVX2", "AVX512")


def local_blobs() -> list[str]:
    """Return the names of the blobs of the current workspace, without its parents', sorted."""
    return sorted(_current.blobs)


def create_child_workspace(parent_ws_name: Any, child_ws_name: Any) -> None:
    """Create a named child workspace: look-ups fall back to the parent, new blobs stay here.

    Raises EnforceNotMet: there is no parent of that name (also a KeyError), or a name is not valid.
    """
    caller = "create_child_workspace"
    parent = _current.workspaces.get(name_of(parent_ws_name, caller))
    if parent is None:
        raise EnforceKeyError(f"Parent ws {parent_ws_name!r} does not exist.", caller)
    _current.workspaces[name_of(child_ws_name, caller)] = parent._child()


def get_build_options() -> dict[str, str]:
    """Return the libraries that Caffe2's operators run on here, under the names of build options.

    The texts are "ON" and "OFF", as CMake writes them, and the version of torch.
    """
    import torch

    return {
        "TORCH_VERSION": torch.__version__,
        "USE_CUDA": "ON" if has_cuda_support else "OFF",
        "USE_MKLDNN": "OFF",
        "USE_ROCM": "OFF",
        "USE_TRT": "OFF",
    }


def create_net(net: Any, overwrite: bool = False) -> bool:
    """Create a net in the current workspace; see `CreateNet`."""
    return _CreateNet(_as_message(net, "NetDef", "create_net"), overwrite)


def delete_net(name: Any) -> bool:
    """Delete a net of the current workspace, if there is one of that name; return True."""
    _DeleteNet(name)
    return True


def add_observer_to_net(net_name: Any, observer_type: str) -> Observer:
    """Add an observer to a created net, and return it; see ``core.Net.AddObserver``."""
    caller = "add_observer_to_net"
    return _net_named(net_name, caller).add_observer(observer_type, caller)


def remove_observer_from_net(net_name: Any, observer: Observer) -> None:
    """Remove an observer from a created net, if it is one of that net."""
    _net_named(net_name, "remove_observer_from_net").remove_observer(observer)


def num_observers_on_net(net_name: Any) -> int:
    """Return the number of observers of a created net."""
    return len(_net_named(net_name, "num_observers_on_net").observers)


def apply_transform(transform_key: Any, net: bytes) -> bytes:
    """Return the bytes of a transformed NetDef; see `ApplyTransform`."""
    return bytes(ApplyTransform(transform_key, net).SerializeToString())


def apply_transform_if_faster(
    transform_key: Any,
    net: bytes,
    init_net: bytes,
    warmup_runs: int,
    main_runs: int,
    improvement_threshold: float,
) -> bytes:
    """Return the bytes of the faster of two NetDefs; see `ApplyTransformIfFaster`."""
    faster = ApplyTransformIfFaster(
        transform_key,
        net,
        init_net,
        warmup_runs=warmup_runs,
        main_runs=main_runs,
        improvement_threshold=improvement_threshold,
    )
    return bytes(faster.SerializeToString())


def workspace_transform_exists(name: str) -> bool:
    """Return whether `run_workspace_transform` knows a transform."""
    return transform_exists(name, of_workspace=True)


def transform_fuseConvBN(net: bytes) -> bytes:
    """Return the bytes of a NetDef whose convolutions include the SpatialBN that follow them."""
    return run_workspace_transform("FuseConvBN", net)


def transform_optimizeForMKLDNN(net: bytes, training_mode: bool = False) -> bytes:
    """Return the bytes of a NetDef whose convolutions on MKL-DNN include what follows them."""
    changed = _as_message(net, "NetDef", "transform_optimizeForMKLDNN")
    if not training_mode:
        _optimize_for_mkldnn(changed)
    return bytes(changed.SerializeToString())


def transform_fuseNNPACKConvRelu(net: bytes) -> bytes:
    """Return the bytes of a NetDef whose NNPACK convolutions include the Relu that follow them."""
    return run_transform("FuseNNPACKConvRelu", net)
