# SPDX-License-Identifier: Apache-2.0
"""Nets of type "compiled": their operators compiled by torch.compile.

A net is cut into parts: operators that torch can trace, and the other ones. A part that torch can
trace is compiled for the types and sizes of its inputs, again where these change. It is then one
call that computes the blobs that are needed outside of the part; a blob that it overwrites is
written in place. Operators that cannot be traced or compiled run one by one, in each run, as do
operators that write a blob whose memory another one has. So the same inputs always take the same
way, and the results have the same bits. Inner blobs are empty after a compiled run.

torch keeps compiled code on disk, for other processes too (``TORCHINDUCTOR_CACHE_DIR``).
"""

from __future__ import annotations

import threading
import warnings
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

import torch

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.torch_io import operand, put
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.net_function import Step, names_of, needed_after, parts_of
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.operator_core import run_all
from bridge.caffe2.execution.tape import MOST_SIZES
from bridge.exchange.torch_settings import neutral

TYPE_CHECKING = False
if TYPE_CHECKING:
    # A compiled function of the inputs' tensors, and the outputs that it returns, in this order.
    Compiled = tuple[Callable[..., Any], list[str]]

_CALLER = "RunNet"
_SHORTEST = 2  # operators that are worth compiling
_SMALL_PRODUCT = 1 << 14  # multiplications; larger matrix products are left to a library


class CompiledRun:
    """The operators of a net, in segments; see the module.

    operators, definitions: of the net, in order. outputs: its external outputs; if it names
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
        sharing = [step for step in steps if step.declaration is None and step.function is not None]
        aliases = names_of(sharing)
        self._parts: list[tuple[int, list[Operator], _CompiledPart | None]] = []
        for part in parts_of(steps, _kind):
            found = None
            if steps[part.start].reason is None and len(part) >= _SHORTEST:
                found = _CompiledPart(steps, part, outputs, table, {*aliases[0], *aliases[1]})
            self._parts.append((part.start, list(operators[part.start : part.stop]), found))

    def run(self, position: list[int]) -> None:
        """Run all parts in order; if one fails, set ``position[0]`` to its operator's position."""
        with neutral():
            for start, operators, part in self._parts:
                position[0] = start
                if part is not None and part.run():
                    continue
                at = [0]
                try:
                    run_all(operators, at)
                except BaseException:
                    position[0] = start + at[0]
                    raise


def _kind(step: Step) -> tuple[bool, str]:
    """Return whether a step can be traced, and its device; set the reason why not."""
    effects = step.declaration.effects if step.declaration is not None else ()
    # An operator that knows testing from training draws in training only.
    if "random" in effects and step.reason is None and not step.arguments.get("is_test"):
        step.reason = "draws random numbers"
    if step.declaration is None and step.reason is None:
        step.reason = "shares the memory of its blobs"
    return step.reason is None, str(step.definition.device)


class _CompiledPart:
    """Several operators as one call of compiled code, which writes the blobs needed elsewhere.

    aliases: blobs that other operators of the net make share memory.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        part: range,
        outputs: Sequence[str],
        table: BlobTable,
        aliases: Collection[str],
    ) -> None:
        self._steps = steps[part.start : part.stop]
        reads, writes = names_of(self._steps)
        needed = needed_after(steps, part, (*outputs, *reads)) if outputs else writes
        self._inputs = {name: table._blobs[name] for name in reads}
        self._outputs = {name: table._blobs[name] for name in needed}
        self._written = frozenset(writes)
        self._others = {name: table._blobs[name] for name in {*aliases, *writes}.difference(reads)}
        self._inner: list[Blob] = [table._blobs[name] for name in writes if name not in needed]
        # By the types and sizes of the inputs; None: they could not be compiled.
        self._compiled: dict[Any, Compiled | None] = {}
        self._lock = threading.Lock()  # while it is compiled

    def run(self) -> bool:
        """Run compiled code; return False, with nothing written, if the operators have to run."""
        found = [blob._tensor for blob in self._inputs.values()]
        tensors = []
        for one in found:
            if one is None or not one.storage_initialized():
                return False
            try:
                tensors.append(operand(one).detach())
            except (EnforceNotMet, BufferError):  # the operator that reads it raises the error
                return False
        given = dict(zip(self._inputs, tensors, strict=True))
        if self._writes_another(given):
            return False
        with torch.no_grad():
            compiled = self._compiled_for(tensors)
            if compiled is None:
                return False
            function, names = compiled
            try:
                results = function(*tensors)
            except Exception:  # noqa: BLE001  # the operators raise the error; nothing is written
                return False
            for name, value in zip(names, results, strict=True):
                before = given.get(name)
                layout = value.shape, value.dtype
                if before is not None and (before.shape, before.dtype) == layout:
                    before.copy_(value)
                else:
                    put(self._outputs[name], value)
        for blob in self._inner:  # their values are of an earlier run
            blob.Reset()
        return True

    def _writes_another(self, tensors: dict[str, torch.Tensor]) -> bool:
        """Return whether a blob that is written has memory of another; tensors: of the inputs.

        Two blobs may have been fed one torch tensor. An operator that writes one changes the other.
        """
        spans = [(*_span(one), name in self._written) for name, one in tensors.items()]
        for name, blob in self._others.items():
            if blob._tensor is not None:
                with suppress(EnforceNotMet, BufferError):  # without memory to share
                    spans.append((*_span(operand(blob._tensor)), name in self._written))
        last = last_written = 0
        for start, end, is_written in sorted(spans):
            if start < (last if is_written else last_written):
                return True
            last, last_written = max(last, end), max(last_written, end if is_written else 0)
        return False

    def _compiled_for(self, tensors: Sequence[torch.Tensor]) -> Compiled | None:
        """Return the compiled code for the types and sizes of tensors, or None."""
        key = tuple([(one.dtype, one.device, one.shape, one.stride()) for one in tensors])
        if key not in self._compiled:
            with self._lock:
                if key not in self._compiled:
                    if len(self._compiled) >= MOST_SIZES:
                        return None
                    self._compiled[key] = self._compile(tensors)
        return self._compiled[key]

    def _compile(self, tensors: Sequence[torch.Tensor]) -> Compiled | None:
        names: list[str] = []
        try:
            traced = self._trace(tensors, names)
        except Exception:  # noqa: BLE001  # the operators, run one by one, raise the error
            return None
        try:
            with warnings.catch_warnings():
                # torch's compiler calls deprecated functions of torch.
                warnings.simplefilter("ignore", DeprecationWarning)
                function = _compiled_graph(traced, tensors)
        except Exception as cause:  # noqa: BLE001  # whatever it is, the operators run
            warnings.warn(
                f"torch could not compile the operators {self._steps[0].position} to "
                f"{self._steps[-1].position} of a net, which run one by one: {cause}",
                RuntimeWarning,
                stacklevel=2,
            )
            return None
        return function, names

    def _trace(self, tensors: Sequence[torch.Tensor], names: list[str]) -> Any:
        """Return the graph of the steps; see `_traced`."""
        from torch.fx.experimental.proxy_tensor import make_fx

        return make_fx(
            lambda *given: self._traced(given, names),
            decomposition_table={torch.ops.aten.addmm.default: _small_product},
            tracing_mode="fake",
        )(*tensors)

    def _traced(self, tensors: Sequence[torch.Tensor], names: list[str]) -> list[Any]:
        """Return the results of the steps, with memory of their own; `names` gets their names."""
        given = dict(zip(self._inputs, tensors, strict=True))
        values: dict[str, Any] = dict(given)
        for step in self._steps:
            device = tensors[0].device if tensors else "cpu"
            step.call(values, step.placed(step.arguments, device), "exact")
        # No operator writes some outputs, as the mask of a Dropout in test mode; and some are
        # inputs as they were.
        names[:] = [
            name
            for name in self._outputs
            if values.get(name) is not None and values[name] is not given.get(name)
        ]
        results = [values[name] for name in names]
        owned = {one.untyped_storage()._cdata for one in tensors}
        for i, value in enumerate(results):
            if value.untyped_storage()._cdata in owned or not value.is_contiguous():
                results[i] = value.clone(memory_format=torch.contiguous_format)
            owned.add(results[i].untyped_storage()._cdata)
        return results


def _span(tensor: torch.Tensor) -> tuple[int, int]:
    """Return the addresses of the first byte and behind the last one; equal without elements."""
    start, steps = tensor.data_ptr(), zip(tensor.shape, tensor.stride(), strict=True)
    count = 1 + sum((n - 1) * step for n, step in steps) if tensor.numel() else 0
    return start, start + count * tensor.itemsize


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
    standalone = getattr(torch._inductor, "standalone_compile", None)
    if standalone is not None:  # torch.compile without its guards: half the time
        return standalone(graph, list(tensors), dynamic_shapes="from_example_inputs")  # type: ignore[no-any-return]
    compiled: Callable[..., Any] = torch.compile(graph, fullgraph=True, dynamic=False)
    compiled(*[tensor.clone() for tensor in tensors])
    return compiled
