# SPDX-License-Identifier: Apache-2.0
"""The functions of ``workspace.C`` that `workspace` and `core` do not have under another name.

Follows caffe2/python/pybind_state.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.hardware import has_cuda_support
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.names import name_of
from bridge.caffe2.execution.observers import Observer
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_blobs import fetch_named
from bridge.caffe2.workspaces.named_nets import CreateNet, DeleteNet, net_named
from bridge.caffe2.workspaces.native_names import fetched
from bridge.caffe2.workspaces.transforms import (
    ApplyTransform,
    ApplyTransformIfFaster,
    optimize_for_mkldnn,
    transform_bytes,
    transform_exists,
)
from bridge.caffe2.workspaces.workspace import Workspace as _Workspace

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
    return fetched(lambda one: fetch_named(current.workspace, one, "fetch_blob"), name)


def builtin_cpu_supports_avx2() -> bool:
    """Return whether the processor has AVX2, and torch uses it."""
    from torch.backends.cpu import get_cpu_capability

    return get_cpu_capability() in ("AVX2", "AVX512")


def local_blobs() -> list[str]:
    """Return the names of the blobs of the current workspace, without its parents', sorted."""
    return sorted(current.blobs)


def create_child_workspace(parent_ws_name: Any, child_ws_name: Any) -> None:
    """Create a named child workspace: look-ups fall back to the parent, new blobs stay here.

    Raises EnforceNotMet: there is no parent of that name (also a KeyError), or a name is not valid.
    """
    caller = "create_child_workspace"
    parent = current.workspaces.get(name_of(parent_ws_name, caller))
    if parent is None:
        raise EnforceKeyError(f"Parent ws {parent_ws_name!r} does not exist.", caller)
    current.workspaces[name_of(child_ws_name, caller)] = parent._child()


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
    return CreateNet(as_message(net, "NetDef", "create_net"), overwrite)


def delete_net(name: Any) -> bool:
    """Delete a net of the current workspace, if there is one of that name; return True."""
    DeleteNet(name)
    return True


def add_observer_to_net(net_name: Any, observer_type: str) -> Observer:
    """Add an observer to a created net, and return it; see ``core.Net.AddObserver``."""
    caller = "add_observer_to_net"
    return net_named(net_name, caller).add_observer(observer_type, caller)


def remove_observer_from_net(net_name: Any, observer: Observer) -> None:
    """Remove an observer from a created net, if it is one of that net."""
    net_named(net_name, "remove_observer_from_net").remove_observer(observer)


def num_observers_on_net(net_name: Any) -> int:
    """Return the number of observers of a created net."""
    return len(net_named(net_name, "num_observers_on_net").observers)


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
    return transform_bytes("FuseConvBN", net)


def transform_optimizeForMKLDNN(net: bytes, training_mode: bool = False) -> bytes:
    """Return the bytes of a NetDef whose convolutions on MKL-DNN include what follows them."""
    changed = as_message(net, "NetDef", "transform_optimizeForMKLDNN")
    if not training_mode:
        optimize_for_mkldnn(changed)
    return bytes(changed.SerializeToString())


def transform_fuseNNPACKConvRelu(net: bytes) -> bytes:
    """Return the bytes of a NetDef whose NNPACK convolutions include the Relu that follow them."""
    return transform_bytes("FuseNNPACKConvRelu", net)
