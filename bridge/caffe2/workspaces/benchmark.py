# SPDX-License-Identifier: Apache-2.0
"""Timing nets of the current workspace.

>>> from bridge.caffe2 import core, workspace
>>> net = core.Net("timed_here")
>>> _ = net.ConstantFill([], "x", shape=[2], value=1.0)
>>> per_run, per_operator = workspace.BenchmarkNetOnce(net, 1, 10, run_individual=True)
>>> 0 < per_operator < 1000, type(workspace.GetStats()), workspace.ClearGlobalNetObserver()
(True, <class 'dict'>, None)
>>> workspace.CreateNet(net), len(workspace.BenchmarkNet("timed_here", 1, 10))
(True, 1)
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

import time

from bridge.annotation import Any
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.named_nets import net_named
from bridge.caffe2.workspaces.operator_runs import count_of


def GetStats() -> dict[str, int]:
    """Return the counters of the process by name, such as the operator AtomicIter's."""
    from bridge.caffe2.operators.objects.stat_registry import registered_stats

    return {name.decode(): count for name, count in registered_stats.export(False).items()}


def ClearGlobalNetObserver() -> None:
    """Do nothing: no observer is added to all nets."""


def BenchmarkNet(
    name: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Run a created net, and return a list of the mean time of a run, in milliseconds.

    The first `warmup_runs` runs are not counted, the next `main_runs` are. With `run_individual`
    the mean time of each operator follows, in milliseconds. Raises EnforceNotMet as `RunNet`.
    """
    caller = "BenchmarkNet"
    return _benchmark(net_named(name, caller), warmup_runs, main_runs, run_individual, caller)


def BenchmarkNetOnce(
    net: Any, warmup_runs: int, main_runs: int, run_individual: bool = False
) -> list[float]:
    """Create a net, run it as `BenchmarkNet` does, and discard it; return the same list."""
    caller = "BenchmarkNetOnce"
    created = RunnableNet(as_message(net, "NetDef", caller), current.workspace, caller)
    return _benchmark(created, warmup_runs, main_runs, run_individual, caller)


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
