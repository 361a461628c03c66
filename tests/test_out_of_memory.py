# SPDX-License-Identifier: Apache-2.0
"""Every public call of the core, the exchange and the workspace has a test of exhausted memory.

Those tests are the tables `CALLS` in the files `test_*_out_of_memory.py`. What they call is read
out of their code, so that a new public name without such a test fails here.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests import test_front_out_of_memory as front
from tests.at import test_tensor_out_of_memory as at_tensor
from tests.c10 import test_storage_out_of_memory as storage
from tests.caffe2.tensor import test_tensor_out_of_memory as caffe2_tensor
from tests.caffe2.workspaces import test_feed_fetch_out_of_memory as feed_fetch
from tests.caffe2.workspaces import test_named_nets_out_of_memory as nets

OLD_NAME = "the old name of another, which it calls"
NO_CALL = "a value, module or class that is not called"
NEEDS_GPU = "needs a GPU"
OF_LIBRARY = "runs the library's own code, which ends the process when it finds no memory"
OF_TYPES = "reads a table of types"
OF_MACHINE = "what torch says of the machine; changes nothing"
ROOMS = "runs code in Python, other processes or libraries"
BUILDS = "builds what a program consists of, and changes no state of it"
EXEMPT = {
    **dict.fromkeys(("dims", "meta", "ndim"), OLD_NAME),
    **dict.fromkeys(("cuda", "pin_memory", "to_cupy"), NEEDS_GPU),
    **dict.fromkeys(("to_jax", "to_tensorflow"), OF_LIBRARY),
    **dict.fromkeys(("Tensor", "core", "C", "scope", "utils", "caffe2_pb2"), NO_CALL),
    **dict.fromkeys(("FLAGS", "Operator", "Int8Tensor"), NO_CALL),
    **dict.fromkeys(("Int8TensorCPU", "GpuDeviceType", "operator_tracebacks"), NO_CALL),
    **dict.fromkeys(("NumCudaDevices", "NumGpuDevices", "GetDeviceProperties"), OF_MACHINE),
    **dict.fromkeys(("GetCUDAVersion", "GetCuDNNVersion", "GetGPUMemoryInfo"), OF_MACHINE),
    **dict.fromkeys(("GetGpuPeerAccessPattern", "GetNumNUMANodes", "IsNUMAEnabled"), OF_MACHINE),
    **dict.fromkeys(("has_cuda_support", "has_gpu_support", "has_hip_support"), OF_MACHINE),
    "is_asan": OF_MACHINE,
    **dict.fromkeys(("install", "operator", "register_operator", "to_module"), BUILDS),
    **dict.fromkeys(("load_checkpoint", "save_checkpoint"), "files: tests/test_caffe2_checkpoint"),
    **dict.fromkeys(("Shared", "attach", "conform", "share", "wrap"), ROOMS),
    **dict.fromkeys(("ctypes", "tobytes", "to_numpy"), "reads what `numpy` returns"),
    **dict.fromkeys(("requires_grad_", "to_device"), "what `detach` and `to` do"),
    "get_include": "a path",
    **dict.fromkeys(("byteorder", "char", "kind", "to_complex", "to_real"), OF_TYPES),
    **dict.fromkeys(("is_complex", "is_floating_point", "is_signed"), OF_TYPES),
    "ClearGlobalNetObserver": "does nothing",
    "GlobalInit": "sets flags of the process, once",
    "RunPlanInBackground": "runs in another thread, whose allocations no test can count",
}


def called(function: Callable[..., Any]) -> Iterator[str]:
    """Yield the names that a function uses, and those that functions of its module use for it."""
    yield getattr(function, "__name__", "")
    code = getattr(function, "__code__", None)
    pending = [code] if code is not None and "tests" in function.__module__ else []
    while pending:
        code = pending.pop()
        pending += [part for part in code.co_consts if isinstance(part, types.CodeType)]
        for name in code.co_names:
            yield name
            helper = vars(inspect.getmodule(function)).get(name)
            if isinstance(helper, types.FunctionType) and helper.__module__ == function.__module__:
                yield from called(helper)


def calls_in(*modules: Any) -> set[str]:
    """Return the names that the calls of these test modules use."""
    tables = [getattr(one, table, {}) for one in modules for table in ("CALLS", "OF_A_BLOB")]
    calls = [
        one[1] if isinstance(one, tuple) else one for table in tables for one in table.values()
    ]
    return {name for one in calls for name in called(one)}


def names_of(cls: type) -> set[str]:
    """Return the public names that a class of the package defines, without those from torch."""
    return {
        name
        for base in cls.__mro__
        if base.__module__.startswith("bridge")
        for name, value in vars(base).items()
        if not name.startswith("_")
        and getattr(value, "__module__", None) != "bridge.at.torch_ops"
        and not isinstance(value, property | c10.DeviceType)
    }


def calls_of_c10() -> set[str]:
    """Return the functions and methods of c10; its types, devices and errors are made alike."""
    values = {name: getattr(c10, name) for name in c10.__all__}
    functions = {name for name, value in values.items() if inspect.isroutine(value)}
    classes = [value for value in values.values() if isinstance(value, type)]
    return functions.union(*map(names_of, classes))


WORKSPACE = calls_in(feed_fetch, nets)
CORE = calls_in(front, storage)
PARTS: dict[str, tuple[set[str], set[str]]] = {
    "c10": (calls_of_c10(), CORE),
    "at": (set(at.__all__), calls_in(at_tensor)),
    "at.Tensor": (names_of(at.Tensor), calls_in(at_tensor)),
    "caffe2": (set(caffe2.__all__), calls_in(caffe2_tensor, feed_fetch)),
    "caffe2.Tensor": (names_of(caffe2.Tensor), calls_in(caffe2_tensor)),
    "caffe2.Blob": (names_of(caffe2.Blob), WORKSPACE),
    "bridge": (set(bridge.__all__) - {"__version__"}, CORE),
    "workspace": (set(workspace.__all__), WORKSPACE),
    "workspace.Workspace": (names_of(workspace.Workspace), WORKSPACE),
}


@pytest.mark.parametrize("part", PARTS)
def test_every_call_has_a_test(part: str) -> None:
    wanted, found = PARTS[part]
    assert sorted(wanted - found - EXEMPT.keys()) == []


def test_every_exemption_is_needed() -> None:
    needed = set().union(*(wanted - found for wanted, found in PARTS.values()))
    assert sorted(EXEMPT.keys() - needed) == []
