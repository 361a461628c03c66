# SPDX-License-Identifier: Apache-2.0
"""Further names of ``caffe2.python.workspace`` that scripts use: messages as bytes, timing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.execution.nets import RunNet, created_net
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.messages import kind_of
from bridge.caffe2.scope import CurrentNameScope
from bridge.caffe2.workspaces import state

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BenchmarkNet",
    "BenchmarkNetOnce",
    "ClearGlobalNetObserver",
    "GetNameScope",
    "GetNetName",
    "GetStats",
    "NumCudaDevices",
    "NumGpuDevices",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "WorkspaceGuard",
]


def StringifyProto(obj: Any) -> Any:
    """Give the bytes of a message, or of what makes one by ``Proto()``; strings as they are.

    Raises EnforceNotMet, also a ValueError: it is none of these.
    """
    if isinstance(obj, (str, bytes)):
        return obj
    message = obj.Proto() if hasattr(obj, "Proto") else obj
    if not hasattr(message, "SerializeToString"):
        raise EnforceValueError(
            f"Unexpected argument to StringifyProto of type {type(obj).__name__}",
            "",
            "StringifyProto",
        )
    return message.SerializeToString()


def StringifyBlobName(name: Any) -> str:
    """Give the name of a blob. Raises EnforceNotMet, also an AssertionError: it is none."""
    return _name(name, "BlobReference")


def StringifyNetName(name: Any) -> str:
    """Give the name of a net. Raises EnforceNotMet, also an AssertionError: it is none."""
    return _name(name, "Net")


def _name(name: Any, kind: str) -> str:
    if isinstance(name, (str, bytes)) or type(name).__name__ == kind:
        return name.decode() if isinstance(name, bytes) else str(name)
    raise EnforceAssertionError(f"Expected a string or {kind}", "", f"Stringify{kind}Name")


def GetNetName(net: Any) -> str:
    """Give the name of a net, which is that, a ``core.Net`` or a NetDef.

    Raises EnforceNotMet: it is none of these.
    """
    if isinstance(net, str):
        return net
    message = net.Proto() if hasattr(net, "Proto") else net
    if kind_of(message) != "NetDef":
        raise EnforceValueError(f"Not a Net object: {net}", "", "GetNetName")
    return str(message.name)


def GetNameScope() -> str:
    """Give the current name scope, which ends in a slash or is empty."""
    return CurrentNameScope()


@contextmanager
def WorkspaceGuard(workspace_name: Any) -> Iterator[None]:
    """Switch to a workspace, by its name, made if there is none, or itself; back at the end."""
    from bridge.caffe2.workspace import SwitchWorkspace

    name, workspace = state.name, state.workspace
    before = name if state.workspaces.get(name) is workspace else workspace
    SwitchWorkspace(workspace_name, True)
    try:
        yield
    finally:
        SwitchWorkspace(before, True)


def GetStats() -> dict[str, int]:
    """Give the counts that operators keep: none here."""
    return {}


def ClearGlobalNetObserver() -> None:
    """Do nothing: there are no observers of nets here."""


def NumCudaDevices() -> int:
    """Count the CUDA devices that torch can use; 0 without torch."""
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


NumGpuDevices = NumCudaDevices


def BenchmarkNet(
    name: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Run a net that was created, and give the milliseconds that a run of it takes.

    First `warmup_runs` runs that do not count, then `main_runs`. With `run_individual` the
    milliseconds of each operator follow. Raises EnforceNotMet as `RunNet`.
    """
    RunNet(name, warmup_runs)
    return _benchmark(created_net(name, "BenchmarkNet"), main_runs, run_individual)


def BenchmarkNetOnce(
    net: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Make a net, run it as `BenchmarkNet` does, and forget it."""
    from bridge.caffe2.messages import as_message

    made = RunnableNet(as_message(net, "NetDef", "BenchmarkNetOnce"), state.workspace, "")
    for _ in range(warmup_runs):
        made._run("BenchmarkNetOnce")
    return _benchmark(made, main_runs, run_individual)


def _benchmark(net: RunnableNet, runs: int, individually: bool) -> list[float]:
    started = time.perf_counter()
    for _ in range(runs):
        net._run("BenchmarkNet")
    milliseconds = [_per_run(started, runs)]
    if individually:
        for operator in net._operators:
            started = time.perf_counter()
            for _ in range(runs):
                operator.Run()
            milliseconds.append(_per_run(started, runs))
    return milliseconds


def _per_run(started: float, runs: int) -> float:
    return 1000 * (time.perf_counter() - started) / max(runs, 1)
