# SPDX-License-Identifier: Apache-2.0
"""Trying out nets of the current workspace: the time of a run, and random inputs.

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
from collections.abc import Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.workspaces.current import current
from bridge.caffe2.workspaces.feed_fetch import FeedBlob
from bridge.caffe2.workspaces.named_nets import net_named
from bridge.caffe2.workspaces.run_once import count_of


def GetStats() -> dict[str, int]:
    """Return the counters of the process by name, such as the operator AtomicIter's."""
    from bridge.caffe2.operators.objects.stats import registered_stats

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


_TYPES = {"float": "float32", "int": "int32", "int64_t": "int64", "bool": "bool"}


def FillRandomNetworkInputs(net: Any, input_dims: Any, input_types: Any) -> None:
    """Feed random values to the external inputs of a net: floats in [0, 1), or integers 0 and 1.

    input_dims, input_types: a list of lists, one for each operator that reads a blob which no
    earlier operator writes, in order: the sizes of each of its inputs, and the type of each,
    ``"float"``, ``"int"``, ``"int64_t"`` or ``"bool"``.

    Raises EnforceNotMet, also a TypeError or ValueError: the number of lists is not the number of
    such operators or of their inputs, or another type. Nothing is fed then.

    >>> from bridge.caffe2 import core, workspace
    >>> net = core.Net("n")
    >>> _ = net.FC(["x", "w", "b"], "y")
    >>> sizes, types = [[[2, 4], [3, 4], [3]]], [["float"] * 3]
    >>> workspace.FillRandomNetworkInputs(net, sizes, types)
    >>> workspace.RunNetOnce(net), workspace.FetchBlob("y").shape
    (True, (2, 3))
    """
    caller = "FillRandomNetworkInputs"
    message = as_message(net, "NetDef", caller)
    written: set[str] = set()
    reading = []
    for operator in message.op:
        if operator.input and not written.issuperset(operator.input):
            reading.append(operator)
        written.update(operator.output)
    for argument in (input_dims, input_types):
        if not hasattr(argument, "__len__") or not all(hasattr(one, "__len__") for one in argument):
            raise EnforceTypeError(
                "Sizes and types are lists of lists, one for each operator that takes inputs.",
                caller,
            )
    if not len(reading) == len(input_dims) == len(input_types):
        raise EnforceValueError(
            f"{len(reading)} operators take inputs from outside; there are sizes for "
            f"{len(input_dims)} and types for {len(input_types)}.",
            caller,
        )
    fed: dict[str, Any] = {}
    for operator, sizes, types in zip(reading, input_dims, input_types, strict=True):
        if not len(operator.input) == len(sizes) == len(types):
            raise EnforceValueError(
                f"{operator.type} takes {len(operator.input)} inputs; there are {len(sizes)} "
                f"sizes and {len(types)} types.",
                caller,
            )
        for name, dims, kind in zip(operator.input, sizes, types, strict=True):
            if name not in written:
                fed.setdefault(name, _random(dims, kind, caller))
    for name, array in fed.items():
        FeedBlob(name, array)


def _random(dims: Sequence[int], kind: str, caller: str) -> Any:
    import numpy as np

    if kind not in _TYPES:
        raise EnforceValueError(f"{kind!r} is not one of {', '.join(_TYPES)}.", caller)
    rng = np.random.default_rng()
    with wrapping(f"Sizes {dims!r} are not possible", caller, (TypeError, ValueError, MemoryError)):
        if kind == "float":
            return rng.random(tuple(dims), dtype="float32")
        return rng.integers(0, 2, tuple(dims)).astype(_TYPES[kind])
