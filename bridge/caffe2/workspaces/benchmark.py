# SPDX-License-Identifier: Apache-2.0
"""Further names of ``caffe2.python.workspace`` that scripts use: messages as bytes, timing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.base.messages import as_message, kind_of, message_in, wire_bytes
from bridge.caffe2.base.names import name_of
from bridge.caffe2.definitions.scopes import CurrentNameScope
from bridge.caffe2.execution.nets import created_net
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.execution.running import count_of
from bridge.caffe2.workspaces.workspace import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BenchmarkNet",
    "BenchmarkNetOnce",
    "ClearGlobalNetObserver",
    "GetNameScope",
    "GetNetName",
    "GetStats",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "WorkspaceGuard",
]


def StringifyProto(obj: Any) -> Any:
    """Return the bytes of a message, or of what makes one by ``Proto()``; strings as they are.

    Raises EnforceNotMet, also a ValueError: it is none of these, or lacks a required field.
    """
    if isinstance(obj, (str, bytes)):
        return obj
    message = message_in(obj)
    if not hasattr(message, "SerializeToString"):
        raise EnforceValueError(
            f"Unexpected argument to StringifyProto of type {type(obj).__name__}",
            "StringifyProto",
        )
    return wire_bytes(message, kind_of(message) or "message", "StringifyProto")


def StringifyBlobName(name: Any) -> str:
    """Return the name of a blob. Raises EnforceNotMet, also an AssertionError: it is none."""
    return _name(name, "BlobReference")


def StringifyNetName(name: Any) -> str:
    """Return the name of a net. Raises EnforceNotMet, also an AssertionError: it is none."""
    return _name(name, "Net")


def _name(name: Any, kind: str) -> str:
    if isinstance(name, (str, bytes)):
        return name_of(name, f"Stringify{kind}Name")
    if type(name).__name__ == kind:
        return str(name)
    raise EnforceAssertionError(f"Expected a string or {kind}", f"Stringify{kind}Name")


def GetNetName(net: Any) -> str:
    """Return the name of a net, which is that, a ``core.Net`` or a NetDef.

    Raises EnforceNotMet: it is none of these.
    """
    if isinstance(net, (str, bytes)):
        return name_of(net, "GetNetName")
    message = message_in(net)
    if kind_of(message) != "NetDef":
        raise EnforceValueError(f"Not a Net object: {net}", "GetNetName")
    return str(message.name)


def GetNameScope() -> str:
    """Return the current name scope, which ends in a slash or is empty."""
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
    """Return the counts that operators keep: none here."""
    return {}


def ClearGlobalNetObserver() -> None:
    """Do nothing: there are no observers of nets here."""


def BenchmarkNet(
    name: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Run a net that was created, and return the milliseconds that a run of it takes.

    First `warmup_runs` runs that do not count, then `main_runs`. With `run_individual` the
    milliseconds of each operator follow. Raises EnforceNotMet as `RunNet`.
    """
    caller = "BenchmarkNet"
    return _benchmark(created_net(name, caller), warmup_runs, main_runs, run_individual, caller)


def BenchmarkNetOnce(
    net: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Make a net, run it as `BenchmarkNet` does, and forget it."""
    caller = "BenchmarkNetOnce"
    made = RunnableNet(as_message(net, "NetDef", caller), state.workspace, caller)
    return _benchmark(made, warmup_runs, main_runs, run_individual, caller)


def _benchmark(
    net: RunnableNet, warmup_runs: int, main_runs: int, individually: bool, caller: str
) -> list[float]:
    warmups = count_of(warmup_runs, "warmup_runs", caller)
    runs = count_of(main_runs, "main_runs", caller)
    for _ in range(warmups):
        net._run(caller)
    started = time.perf_counter()
    for _ in range(runs):
        net._run(caller)
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
