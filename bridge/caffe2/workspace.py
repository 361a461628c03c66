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

import os
from collections.abc import Iterable, Iterator, MutableMapping

from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.lazy import lazily
from bridge.caffe2.base.text import listed
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob, FetchTorch
from bridge.caffe2.workspaces.workspace import (
    Workspace,
    created,
    deserialize_named,
    fetch_int8_named,
    find_named,
    found_blob,
    name_of,
    serialize_named,
    state,
    visible_names,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

    from bridge.caffe2 import c_extension as C
    from bridge.caffe2 import scope, utils
    from bridge.caffe2.base.global_init import GlobalInit
    from bridge.caffe2.base.hardware import (
        GetBlobNUMANode,
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
    from bridge.caffe2.definitions.operator_types import RegisteredOperators
    from bridge.caffe2.definitions.tracebacks import CallWithExceptionIntercept, operator_tracebacks
    from bridge.caffe2.execution.nets import CreateNet, DeleteNet, Nets, RunNet, RunNetOnce
    from bridge.caffe2.execution.plans import RunPlan
    from bridge.caffe2.execution.running import RunOperatorMultiple, RunOperatorsOnce
    from bridge.caffe2.proto import caffe2_pb2
    from bridge.caffe2.workspaces.background import RunPlanInBackground
    from bridge.caffe2.workspaces.benchmark import (
        BenchmarkNet,
        BenchmarkNetOnce,
        ClearGlobalNetObserver,
        GetNameScope,
        GetNetName,
        GetStats,
        StringifyBlobName,
        StringifyNetName,
        StringifyProto,
        WorkspaceGuard,
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
    from bridge.caffe2.workspaces.predictor import Predictor
    from bridge.caffe2.workspaces.random_inputs import FillRandomNetworkInputs
    from bridge.caffe2.workspaces.run_once import RunOperatorOnce
    from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes

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


def FetchBlobs(names: Iterable[Any]) -> list[Any]:
    """Copy what each of the blobs `names` holds, as `FetchBlob` does."""
    try:
        every = list(names)
    except TypeError as cause:
        raise wrap_error("FetchBlobs takes a sequence of names", "FetchBlobs", cause) from cause
    return [FetchBlob(name) for name in every]


def FetchInt8Blob(name: Any) -> Int8Tensor:
    """Copy what the quantized blob `name` holds: data, scale and zero point.

    Raises EnforceNotMet: no such blob (also a KeyError), or it holds something else (also an
    AssertionError).
    """
    return fetch_int8_named(state.workspace, name, "FetchInt8Blob")


def FetchInt8BlobRealVal(name: Any) -> np.ndarray[Any, Any]:
    """Compute the real numbers, float32, that the quantized blob `name` stands for.

    Raises as `FetchInt8Blob` does.
    """
    data, scale, zero_point = fetch_int8_named(state.workspace, name, "FetchInt8BlobRealVal")
    real: np.ndarray[Any, Any] = (data.astype("int32") - int(zero_point)).astype("float32") * scale
    return real


def Blobs() -> list[str]:
    """List the names of the blobs, sorted."""
    return visible_names(state.workspace)


def HasBlob(name: Any) -> bool:
    """Return whether there is a blob `name`. Raises EnforceNotMet: `name` is no name."""
    return found_blob(state.workspace, name_of(name, "HasBlob")) is not None


def CreateBlob(name: Any) -> bool:
    """Make an empty blob `name` unless there is one; return True.

    Raises EnforceNotMet: `name` is no name.
    """
    created(state.workspace, name_of(name, "CreateBlob"))
    return True


def ResetBlob(name: Any) -> None:
    """Make the blob `name` hold nothing; it keeps its name.

    Raises EnforceNotMet, also a KeyError: no such blob.
    """
    find_named(state.workspace, name, "ResetBlob").Reset()


def GetBlobSizeBytes(name: Any) -> int:
    """Count the bytes of the tensor that the blob `name` holds; 0 for what is no tensor.

    In a tensor of strings an element takes its itemsize and the bytes of its string.
    Raises EnforceNotMet, also a KeyError: no such blob.
    """
    return find_named(state.workspace, name, "GetBlobSizeBytes")._size_bytes()


def SerializeBlob(name: Any) -> bytes:
    """Write what the blob `name` holds as the message that Caffe2 keeps it in: the same bytes.

    Tensors of the types that Caffe2 has, strings, and Int8 tensors. Values are copied once.

    Raises EnforceNotMet: no such blob (also a KeyError), or it holds what Caffe2 has no form for,
    or more than 2 GiB, which protobuf does not read.

    >>> import numpy as np
    >>> from bridge.caffe2 import workspace
    >>> workspace.FeedBlob("x", np.arange(2, dtype=np.int32))
    True
    >>> message = workspace.SerializeBlob("x")
    >>> workspace.DeserializeBlob("y", message)
    >>> workspace.FetchBlob("y")
    array([0, 1], dtype=int32)
    """
    return serialize_named(state.workspace, name, "SerializeBlob")


def DeserializeBlob(name: Any, serialized: Any) -> None:
    """Make the blob `name` hold what Caffe2's message `serialized`, bytes, says: copied.

    The blob is made if there is none. A tensor goes into the buffer that the blob's own tensor has
    where type and size fit; memory that came from outside is not written. Part of a large tensor, a
    chunk, goes to its place in the whole; chunks may come one by one in any order.

    Raises EnforceNotMet: the bytes are no such message, contradict themselves, or hold what is not
    to be had here; or `name` is no name. The blob then holds what it held, and no name is created.
    """
    deserialize_named(state.workspace, name, serialized, "DeserializeBlob")


def CurrentWorkspace() -> str:
    """Return the name of the current workspace; the first one is ``"default"``."""
    return state.name


def Workspaces() -> list[str]:
    """List the names of the workspaces, sorted; those made by ``Workspace()`` have none."""
    return sorted(state.workspaces)


def RootFolder() -> str:
    """Return the root folder of the current workspace; ``"."`` unless a reset set it."""
    return state.workspace._root_folder


def SwitchWorkspace(name: Any, create_if_missing: bool = False) -> None:
    """Make the workspace `name` the current one, for all threads.

    A `Workspace` is taken as it is: `CurrentWorkspace` then gives the name that it gave before, and
    a reset leaves the workspace of that name alone.

    Raises EnforceNotMet: there is none (also a KeyError) and it is not to be created.
    """
    if isinstance(name, Workspace):
        with state.lock:
            state.enter(name)
        return
    text = name_of(name, "SwitchWorkspace")
    with state.lock:
        workspace = state.workspaces.get(text)
        if workspace is None:
            if not create_if_missing:
                raise EnforceKeyError(
                    f"There is no workspace {text!r}; there are {listed(Workspaces())}. "
                    "SwitchWorkspace(name, True) makes one.",
                    "SwitchWorkspace",
                    condition="create_if_missing",
                )
            workspace = Workspace()
        state.put(text, workspace)


def ResetWorkspace(root_folder: str | os.PathLike[str] | None = None) -> bool:
    """Put a new, empty workspace in the place of the current one; return True.

    `root_folder` becomes its root folder and is made if it does not exist; None keeps that of the
    old one. Blobs that are still held, and tensors shared with them, stay usable.

    Raises EnforceNotMet: the folder cannot be made; the workspace is then as it was.
    """
    caller = "ResetWorkspace"
    folder = None
    if root_folder is not None:
        try:
            folder = os.fsdecode(root_folder)
            if not os.path.exists(folder):
                os.makedirs(folder, exist_ok=True)
        except Exception as cause:
            raise wrap_error(f"{root_folder!r} cannot be the root folder", caller, cause) from cause
    with state.lock:
        workspace = Workspace()
        workspace._root_folder = state.workspace._root_folder if folder is None else folder
        if state.workspaces[state.name] is state.workspace:
            state.put(state.name, workspace)
        else:
            # One without a name was switched to; the one that has the name is not the current one.
            state.enter(workspace)
    return True


class BlobDict(MutableMapping[str, "Any"]):
    """The values of the current workspace's blobs by name: reading fetches, writing feeds.

    >>> from bridge.caffe2 import workspace
    >>> workspace.blobs["greeting"] = "hello"
    >>> workspace.blobs["greeting"], "greeting" in workspace.blobs
    (b'hello', True)
    >>> del workspace.blobs["greeting"]
    """

    __slots__ = ()

    def __getitem__(self, name: Any) -> Any:
        return FetchBlob(name)

    def __setitem__(self, name: Any, value: Any) -> None:
        FeedBlob(name, value)

    def __delitem__(self, name: Any) -> None:
        find_named(state.workspace, name, "blobs")
        state.workspace.remove_blob(name)

    def __contains__(self, name: object) -> bool:
        return HasBlob(name)

    def __iter__(self) -> Iterator[str]:
        return iter(Blobs())

    def __len__(self) -> int:
        return len(Blobs())

    def clear(self) -> None:
        """Forget all blobs."""
        state.blobs.clear()

    # Values are arrays, so equality of contents is not a yes or no.
    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def __repr__(self) -> str:
        return f"<blobs of workspace {state.name!r}: {listed(Blobs())}>"


blobs = BlobDict()

# Caffe2's number of the type of GPU devices; whether there are any is for NumGpuDevices to say.
GpuDeviceType = 1

# What runs operators is not needed by who has blobs only.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.workspaces.background": "RunPlanInBackground",
        "bridge.caffe2.c_extension": "C",
        "bridge.caffe2.base.global_init": "GlobalInit",
        "bridge.caffe2.base.hardware": (
            "GetBlobNUMANode GetCUDAVersion GetCuDNNVersion GetDeviceProperties GetGPUMemoryInfo "
            "GetGpuPeerAccessPattern GetNumNUMANodes IsNUMAEnabled NumCudaDevices NumGpuDevices "
            "has_cuda_support "
            "has_gpu_support has_hip_support is_asan"
        ),
        "bridge.caffe2.workspaces.immediate": (
            "FeedImmediate FetchImmediate ImmediateBlobs IsImmediate RunOperatorImmediate "
            "StartImmediate StopImmediate"
        ),
        "bridge.caffe2.workspaces.benchmark": (
            "BenchmarkNet BenchmarkNetOnce ClearGlobalNetObserver GetNameScope GetNetName GetStats "
            "StringifyBlobName StringifyNetName StringifyProto "
            "WorkspaceGuard"
        ),
        "bridge.caffe2.execution.nets": "CreateNet DeleteNet Nets RunNet RunNetOnce",
        "bridge.caffe2.execution.plans": "RunPlan",
        "bridge.caffe2.workspaces.predictor": "Predictor",
        "bridge.caffe2.proto.caffe2_pb2": "caffe2_pb2",
        "bridge.caffe2.workspaces.random_inputs": "FillRandomNetworkInputs",
        "bridge.caffe2.definitions.operator_types": "RegisteredOperators",
        "bridge.caffe2.workspaces.run_once": "RunOperatorOnce",
        "bridge.caffe2.execution.running": "RunOperatorMultiple RunOperatorsOnce",
        "bridge.caffe2.scope": "scope",
        "bridge.caffe2.workspaces.shape_inference": "InferShapesAndTypes",
        "bridge.caffe2.definitions.tracebacks": "CallWithExceptionIntercept operator_tracebacks",
        "bridge.caffe2.utils": "utils",
    },
)
