# SPDX-License-Identifier: Apache-2.0
"""Nets of type "compiled": their operators compiled by torch.compile's back end.

A net is cut into segments of operators that torch can trace, and the other operators. A segment is
traced and compiled for the types and sizes of its inputs, again where they change, and then is one
call that computes what is needed outside of it. A blob that it overwrites is written in place. What
cannot be traced or compiled runs operator by operator.

Compiled code is not always faster: an operator may have a kernel of its own, and compiled code
calls torch for convolutions and large products. So the first runs of a segment take turns, and then
the faster way is kept; under ``torch.use_deterministic_algorithms(True)``, which forbids results
that differ in their last bits from run to run, all runs are compiled. Inner blobs are empty after a
compiled run.

torch keeps compiled code on disk, for other processes too (``TORCHINDUCTOR_CACHE_DIR``).
"""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Callable, Sequence
from time import perf_counter

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.calls import Call, Slot
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.net_function import Step, names_of
from bridge.caffe2.execution.operator import Operator, assign
from bridge.caffe2.execution.operator_core import run_all, run_one
from bridge.caffe2.execution.program import Program
from bridge.caffe2.execution.program_core import ProgramCore
from bridge.caffe2.execution.torch_io import operand

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import torch

    # A compiled function of the inputs' tensors, the outputs that it returns in this order, and
    # whether it has written no input if it raises an error.
    Compiled = tuple[Callable[..., Any], tuple[str, ...], bool]

__all__ = ["CompiledRun"]

_CALLER = "RunNet"
_SHORTEST = 2  # operators that are worth compiling
# Which way the first runs of a segment take: c: compiled, o: the operators, which are recorded in
# the first of them. Then both take turns, until one has been faster by this factor after so many
# turns; in the end the faster one is kept.
_FIRST = "cccccooooo"
_TURN = "ccccoooo"
_CLEAR = {2: 1.3, 4: 1.1, 8: 1.0}
# torch functions that raise an error for some values of elements, even when compiled.
_RAISING = {
    *("index", "index_put", "index_select", "index_add", "index_copy", "index_fill", "gather"),
    *("scatter", "scatter_add", "scatter_reduce", "take", "put", "embedding", "_embedding_bag"),
}
_SMALL_PRODUCT = 1 << 14  # multiplications; larger matrix products are left to a library


class CompiledRun:
    """The operators of a net, in segments; see the module.

    operators, definitions: those of the net, in order. outputs: its external outputs; if it names
    none, all blobs are outputs.
    """

    def __init__(
        self,
        operators: Sequence[Operator],
        definitions: Sequence[Definition],
        outputs: Sequence[str],
        table: BlobTable,
    ) -> None:
        steps = [Step(definition, i, _CALLER) for i, definition in enumerate(definitions)]
        self._parts: list[tuple[int, list[Operator], _Segment | None]] = []
        for start, end in _ranges(steps):
            part = steps[start:end]
            segment = None
            if part[0].reason is None and len(part) >= _SHORTEST:
                needed = _needed(part, steps[end:], outputs)
                segment = _segment(part, needed, table)
            self._parts.append((start, list(operators[start:end]), segment))

    def run(self, position: list[int]) -> None:
        """Run all parts in order; if one fails, set ``position[0]`` to that of its operator."""
        for start, operators, segment in self._parts:
            position[0] = start
            began = perf_counter()
            is_compiled = segment is not None and segment.run()
            if not is_compiled:
                at = [0]
                try:
                    run_all(operators, at)
                except BaseException:
                    position[0] = start + at[0]
                    raise
            if segment is not None:
                segment.note(is_compiled, perf_counter() - began)


def _ranges(steps: Sequence[Step]) -> list[tuple[int, int]]:
    """Return (start, end) of the parts: steps on one device that can be traced, or others."""

    def kind(step: Step) -> Any:
        effects = step.declaration.effects if step.declaration is not None else ()
        # An operator that knows testing from training draws in training only.
        if "random" in effects and step.reason is None and not step.arguments.get("is_test"):
            step.reason = "draws random numbers"
        if step.declaration is None and step.reason is None:
            step.reason = "shares the memory of its blobs"
        return (step.reason is None, str(step.definition.device))

    found: list[tuple[int, int]] = []
    for i, step in enumerate(steps):
        if found and kind(steps[i - 1]) == kind(step):
            found[-1] = found[-1][0], i + 1
        else:
            found.append((i, i + 1))
    return found


def _needed(part: Sequence[Step], later: Sequence[Step], outputs: Sequence[str]) -> list[str]:
    """Return what a part has to write: what later steps read, and what is there afterwards."""
    reads, writes = names_of(part)
    if not outputs:
        return writes
    wanted = {*outputs, *reads, *names_of(later)[0]}.union(*(step.kept for step in later))
    return [name for name in writes if name in wanted]


def _segment(part: Sequence[Step], needed: list[str], table: BlobTable) -> _Segment:
    message = caffe2_pb2().OperatorDef()
    message.type = "Compiled"
    message.input.extend(names_of(part)[0])
    message.output.extend(needed)
    definition = Definition(message)
    definition._place(part[0].definition.device)
    assign(definition, _Segment, 0)
    segment = _Segment(definition, table)
    segment.steps = list(part)
    segment.inner = [table._blobs[name] for name in names_of(part)[1] if name not in needed]
    return segment


class _Trial:
    """How long compiled code and the operators take, on inputs of some types and sizes."""

    def __init__(self) -> None:
        self.runs = 0
        self.is_decided = False
        self.least = {True: math.inf, False: math.inf}

    def prefers_operators(self) -> bool:
        """Return whether the operators run next."""
        if self.is_decided:
            return self.least[False] < self.least[True]
        turn = self.runs - len(_FIRST)
        return (_FIRST[self.runs] if turn < 0 else _TURN[turn % len(_TURN)]) == "o"

    def note(self, is_compiled: bool, seconds: float) -> None:
        """Count a run. The least time of each way is what it takes without other programs."""
        self.runs += 1
        self.least[is_compiled] = min(self.least[is_compiled], seconds)
        turns, rest = divmod(self.runs - len(_FIRST), len(_TURN))
        if rest == 0 and turns in _CLEAR:
            less, more = sorted(self.least.values())
            self.is_decided = more >= _CLEAR[turns] * less


class _Segment(ProgramCore, Operator):
    """Several operators as one, which calls compiled code."""

    writes_last = True
    steps: list[Step]
    inner: list[Blob]

    def __init__(self, definition: Definition, table: BlobTable) -> None:
        super().__init__(definition, table)
        # By the types and sizes of the inputs; None: they could not be compiled.
        self._compiled: dict[Any, Compiled | None] = {}
        self._trials: dict[Any, _Trial] = {}
        self._trial: _Trial | None = None  # of the latest run
        self._runs = False
        self._inner_is_written = False
        self._raises_first = True  # whether compiled code that raises has written no blob
        # Of the latest graph: whether it writes inputs, which, and whether with values of inputs.
        self._writes = False
        self._written: list[int] = []
        self._swaps = False
        self._lock = threading.Lock()

    def run(self) -> bool:
        """Run the segment; return False if it has to run operator by operator.

        It has to while another thread runs the segment.
        """
        if not self._lock.acquire(blocking=False):
            self._inner_is_written = True
            return False
        try:
            return self._run_either_way()
        finally:
            self._lock.release()

    def _run_either_way(self) -> bool:
        if self._trial is not None and self._trial.prefers_operators() and self._has_sizes():
            self._runs = False
        else:
            self._runs = True
            self._run_compiled()
        if not self._runs:
            self._inner_is_written = True
        elif self._inner_is_written:
            self._inner_is_written = False
            for blob in self.inner:  # their values are not those of this run
                blob.Reset()
        return self._runs

    def _run_compiled(self) -> None:
        """Run compiled code. If it raises, the operators run, which say what is wrong."""
        try:
            run_one(self)
        except Exception:
            if not self._raises_first:
                raise
            self._runs = False

    def note(self, is_compiled: bool, seconds: float) -> None:
        """Count how long the run took, in which way."""
        if self._trial is not None and not self._trial.is_decided:
            self._trial.note(is_compiled, seconds)

    def RunOnDevice(self) -> None:
        """Compile for the present types and sizes, if that is not done, and run."""
        self._trial = None
        inputs = [blob._tensor for blob in self.Inputs()]
        found = [one for one in inputs if one is not None and one.storage_initialized()]
        if len(found) < len(inputs):
            self._runs = False
            return
        try:
            tensors = [operand(tensor) for tensor in found]
        except (EnforceNotMet, BufferError):  # the operator that reads it says what is wrong
            self._runs = False
            return
        key = tuple((one.dtype, one.device, tuple(one.shape), one.stride()) for one in tensors)
        if key not in self._compiled:
            self._compiled[key] = self._compile(tensors)
        compiled = self._compiled[key]
        if compiled is None:
            self._runs = False
            return
        self._trial = self._trial_of(key)
        if self._trial is not None and self._trial.prefers_operators():
            self._runs = False
            self._set_program(None)  # which holds the memory of the inputs
            return
        function, returned, self._raises_first = compiled
        count = len(inputs)
        slots = {name: count + i for i, name in enumerate(returned)}
        call = Call(
            function,
            tuple([Slot(i) for i in range(count)]),
            {},
            tuple(slots.values()),
            False,
            True,
            None,
        )
        places = tuple(slots.get(name, -1) for name in self._definition.outputs)
        program = Program([call], found, [], count + len(slots), places)
        if not program.is_complete:
            self._runs = False
            return
        self._set_program(program)

    def _trial_of(self, key: Any) -> _Trial | None:
        """Return how the ways compare on inputs of these types and sizes; None: do not compare."""
        import torch

        if torch.are_deterministic_algorithms_enabled() or not self._remember_sizes():
            return None
        return self._trials.setdefault(key, _Trial())

    def _compile(self, tensors: Sequence[torch.Tensor]) -> Compiled | None:
        import torch

        names: list[str] = []
        try:
            traced = self._trace(tensors, names, True)
            writes = self._writes
            # What it writes is written when it has not raised an error. And torch 2.13 leaves out a
            # copy of an input into another, though the first is overwritten before.
            last = writes and (self._swaps or any(map(_raises, traced.graph.nodes)))
            if last:
                traced = self._trace(tensors, names, False)
        except Exception:  # noqa: BLE001  # the operators, run one by one, raise what is wrong with the inputs
            return None
        try:
            with torch.no_grad(), warnings.catch_warnings():
                # torch's compiler calls what torch itself deprecates.
                warnings.simplefilter("ignore", DeprecationWarning)
                function = _compiled_graph(traced, tensors)
        except Exception as cause:  # noqa: BLE001  # whatever it is, the operators run
            warnings.warn(
                f"torch could not compile the operators {self.steps[0].position} to "
                f"{self.steps[-1].position} of a net, which run one by one: {cause}",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        if last:
            function = self._writing_last(function, len(names))
        return function, tuple(names), last or not writes

    def _trace(self, tensors: Sequence[torch.Tensor], names: list[str], writes: bool) -> Any:
        """Return the graph of the steps; see `_traced`."""
        import torch
        from torch.fx.experimental.proxy_tensor import make_fx

        with torch.no_grad():
            return make_fx(
                lambda *given: self._traced(given, names, writes),
                decomposition_table={torch.ops.aten.addmm.default: _small_product},
                tracing_mode="fake",
            )(*[tensor.detach() for tensor in tensors])

    def _writing_last(self, function: Callable[..., Any], count: int) -> Callable[..., Any]:
        """Return a function that writes what `function` returns after its first `count` results."""

        places = self._written

        def call(*tensors: torch.Tensor) -> Any:
            results = function(*tensors)
            for place, value in zip(places, results[count:], strict=True):
                tensors[place].copy_(value)
            return results[:count]

        return call

    def _traced(
        self, tensors: Sequence[torch.Tensor], returned: list[str], writes: bool
    ) -> tuple[Any, ...]:
        """Return what the steps compute; blobs that keep their sizes are written in place.

        Unless `writes`: then their values are returned too, and `_written` are the inputs.
        returned: becomes the names of the other outputs.
        """
        given = dict(zip(self._definition.inputs, tensors, strict=True))
        values: dict[str, Any] = dict(given)
        for step in self.steps:
            device = tensors[0].device if tensors else "cpu"
            step.call(values, step.placed(step.arguments, device), "exact")
        results = []
        returned.clear()
        written = []
        for name in self._definition.outputs:
            value = values.get(name)
            if value is None:  # no operator writes it, as the mask of a Dropout in test mode
                continue
            before = given.get(name)
            if before is not None and before.shape == value.shape and before.dtype == value.dtype:
                written.append((before, value))
                continue
            returned.append(name)
            results.append(value)
        given_memory = {one.untyped_storage()._cdata for one in tensors}
        owned = set(given_memory)
        for i, value in enumerate(results):
            if value.untyped_storage()._cdata in owned or not value.is_contiguous():
                results[i] = value.clone(memory_format=_row_major())
            owned.add(results[i].untyped_storage()._cdata)
        self._writes = bool(written)
        changes = [(before, value) for before, value in written if value is not before]
        self._swaps = False
        for i, (before, value) in enumerate(changes):
            if value.untyped_storage()._cdata in given_memory:  # which may be overwritten itself
                changes[i] = before, value.clone()
                self._swaps = True
        if not writes:
            self._written = [
                next(i for i, one in enumerate(tensors) if one is before) for before, _ in changes
            ]
            return (*results, *(value for _, value in changes))
        for before, value in changes:
            before.copy_(value)
        return tuple(results)


def _raises(node: Any) -> bool:
    """Return whether a call in a graph may raise an error for the values of elements."""
    packet = getattr(node.target, "overloadpacket", None)
    return packet is not None and packet.__name__ in _RAISING


def _row_major() -> Any:
    import torch

    return torch.contiguous_format


def _small_product(
    bias: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, beta: Any = 1, alpha: Any = 1
) -> Any:
    """Return a small matrix product as elementwise operations, which are compiled into one loop."""
    small = a.shape[0] * a.shape[1] * b.shape[1] <= _SMALL_PRODUCT
    if not small or (beta, alpha) != (1, 1) or a.device.type != "cpu":
        return NotImplemented
    return (a.unsqueeze(2) * b.unsqueeze(0)).sum(1) + bias


def _compiled_graph(graph: Any, tensors: Sequence[torch.Tensor]) -> Callable[..., Any]:
    """Return compiled code for a traced graph, which is called with tensors of these sizes."""
    import torch

    standalone = getattr(torch._inductor, "standalone_compile", None)
    if standalone is None:  # before torch 2.8
        compiled: Callable[..., Any] = torch.compile(graph, fullgraph=True, dynamic=False)
        compiled(*[tensor.clone() for tensor in tensors])
        return compiled
    return standalone(graph, list(tensors), dynamic_shapes="from_example_inputs")  # type: ignore[no-any-return]
