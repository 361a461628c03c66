# SPDX-License-Identifier: Apache-2.0
"""TapedSteps: steps of a module whose torch calls are recorded, and made again without them.

The first call on inputs of some types and sizes computes by the functions of the operators, and
learns the types and sizes of what they return. The second one records, with buffers for these. From
the third one on the tape is played. The functions compute, too, where torch has to see them: a call
that needs gradients, is traced, or runs in a mode of torch; where the tape fails, so that they say
what is wrong; and before torch 2.10, which does not describe a tensor in C.
"""

from __future__ import annotations

import threading

import torch

from bridge.caffe2.execution.net_function import Step, names_of
from bridge.caffe2.execution.recorder import compile_calls, record
from bridge.caffe2.execution.tape import MOST_SIZES
from bridge.caffe2.modules.module_tape import ModuleTape, signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from typing import Any

    # Of each output of a step the sizes and the type; None: it is not written.
    Layouts = list[tuple[torch.Size, torch.dtype] | None]
    # Computes the step of a number out of the values of blobs, on a device; the dict has arguments
    # of its function besides its own.
    Compute = Callable[[int, dict[str, Any], Any, dict[str, Any]], None]


def parts_of(steps: Sequence[Step]) -> list[tuple[range, bool]]:
    """Return the parts of a net: steps that can be recorded, or others, in turn."""
    found: list[tuple[range, bool]] = []
    for i, step in enumerate(steps):
        can_be = _is_recorded(step)
        if found and found[-1][1] == can_be:
            found[-1] = range(found[-1][0].start, i + 1), can_be
        else:
            found.append((range(i, i + 1), can_be))
    return found


def _is_recorded(step: Step) -> bool:
    if step.declaration is None:
        return step.function is not None
    definition = step.definition
    return (
        bool(definition.checked.is_recorded)
        and not step.declaration.strings
        and definition.kind == "cpu"
    )


def forget(values: dict[str, Any], names: Iterable[str]) -> None:
    """Remove values that no later step reads."""
    for name in names:
        values.pop(name, None)


class TapedSteps:
    """Steps that can be recorded; see the module.

    steps: those of the module; last: the names that no step after each of them reads. span: the
    numbers of these steps. names: of the operands, in order; None: of what the steps read. outputs:
    names that they write and that are needed afterwards.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        last: Sequence[tuple[str, ...]],
        span: range,
        names: Sequence[str] | None,
        outputs: Sequence[str],
    ) -> None:
        self._outputs = outputs
        self._functions = _Functions(steps, last, span, outputs)
        self._names = names_of(steps[span.start : span.stop])[0] if names is None else list(names)
        # By the signature: what was learned, the tape, or None if there can be none.
        self._tapes: dict[bytes, list[Layouts] | ModuleTape | None] = {}
        self._latest: ModuleTape | None = None
        self._lock = threading.Lock()

    def __call__(self, values: dict[str, Any], device: Any, compute: Compute) -> None:
        """Compute the outputs out of `values`, and put them there.

        compute: what computes a step.
        """
        operands = [values.get(name) for name in self._names]
        found = self.played(operands)
        if found is None:
            signature = signature_of(operands)
            # Another thread that learns at this time is not waited for.
            if signature is not None and self._lock.acquire(blocking=False):
                try:
                    found = self._by_signature(operands, signature, values, device, compute)
                finally:
                    self._lock.release()
        if found is None:
            self._functions(values, device, compute)
        else:
            for names in self._functions.last:
                forget(values, names)
            values.update(zip(self._outputs, found, strict=True))

    def played(self, operands: list[Any]) -> list[Any] | None:
        """Return the outputs by the tape of the latest call; None: it cannot compute them."""
        return None if self._latest is None else self._play(self._latest, operands)

    def _play(self, tape: ModuleTape, operands: list[Any]) -> list[Any] | None:
        try:
            return tape(operands)
        except Exception:  # noqa: BLE001  # the functions of the operators say what is wrong
            self._latest = None
            self._tapes = {}
            return None

    def _by_signature(
        self,
        operands: list[Any],
        signature: bytes,
        values: dict[str, Any],
        device: Any,
        compute: Compute,
    ) -> list[Any] | None:
        """Return the outputs; None: the functions have to compute them."""
        tapes = self._tapes
        if signature not in tapes:
            learned: list[Layouts] = []
            results = self._functions(dict(values), device, compute, learned)
            if len(tapes) >= MOST_SIZES:
                del tapes[next(iter(tapes))]
            tapes[signature] = learned
            return results
        known = tapes.pop(signature)
        tapes[signature] = known  # the latest one is the last to be forgotten
        if isinstance(known, ModuleTape):
            found = self._play(known, operands)
            if found is not None:
                self._latest = known
            return found
        if known is None:
            return None
        # A recording knows operands by the objects.
        operands = [one.detach() for one in operands]
        values = {**values, **dict(zip(self._names, operands, strict=True))}
        buffers = _Buffers(operands, known)
        given = [values, device, compute, None, buffers]
        try:
            results, calls = record(self._functions, given, {})
        except Exception:  # noqa: BLE001  # the functions, without buffers, say what is wrong
            del tapes[signature]
            return None
        tapes[signature] = tape = None
        if all(isinstance(one, torch.Tensor) for one in results):
            tape = compile_calls(calls, operands, buffers.made, results, None)
        if tape is not None:
            tapes[signature] = self._latest = ModuleTape(tape, signature, buffers.made)
        return list(results)


class _Functions:
    """Computes steps by their functions."""

    def __init__(
        self,
        steps: Sequence[Step],
        last: Sequence[tuple[str, ...]],
        span: range,
        outputs: Sequence[str],
    ) -> None:
        self.last = last[span.start : span.stop]
        self._steps = steps[span.start : span.stop]
        self._start = span.start
        self._outputs = outputs

    def __call__(
        self,
        values: dict[str, Any],
        device: Any,
        compute: Compute,
        learned: list[Layouts] | None = None,
        buffers: _Buffers | None = None,
    ) -> list[Any]:
        """Put what the steps compute into `values`, and return the outputs.

        What each step returns is appended to `learned`.
        """
        for place, step in enumerate(self._steps):
            more = {} if buffers is None else buffers.of(step, place, values)
            compute(self._start + place, values, device, more)
            if learned is not None:
                found = [values.get(name) for name in step.outputs]
                learned.append([None if one is None else (one.shape, one.dtype) for one in found])
            forget(values, self.last[place])
        return [values.get(name) for name in self._outputs]


class _Buffers:
    """The buffers that steps write, made at their turn.

    learned: of each step the layouts of its outputs. made: the buffers, in order.
    """

    def __init__(self, operands: Sequence[Any], learned: list[Layouts]) -> None:
        self.made: list[Any] = []
        self._learned = learned
        self._given = {one.untyped_storage()._cdata for one in operands}

    def of(self, step: Step, place: int, values: dict[str, Any]) -> dict[str, Any]:
        """Return the argument of a step that has its buffers, if its function takes any."""
        if step.declaration is None:
            return {}
        bound = step.definition.checked
        if bound.out_name is None or bound.reads_values or bound.forced is not None:
            return {}
        found = []
        with torch._C.DisableTorchFunction():  # these calls are not those of the step
            for o, layout in enumerate(self._learned[place]):
                buffer = None
                if layout is not None:
                    i = bound.in_place.get(o)
                    buffer = None if i is None else self._in_place(step.inputs[i], layout, values)
                    if buffer is None:
                        buffer = torch.empty(layout[0], dtype=layout[1])
                        self.made.append(buffer)
                found.append(buffer)
        return {bound.out_name: found[0] if len(found) == 1 else tuple(found)}

    def _in_place(self, name: str, layout: Any, values: dict[str, Any]) -> Any:
        """Return the tensor of an input that the step may overwrite; None if it may not."""
        value = values[name]
        if (value.shape, value.dtype) != layout or not value.is_contiguous():
            return None
        memory = value.untyped_storage()._cdata
        if memory in self._given:
            return None
        sharing = [one for one in values.values() if isinstance(one, torch.Tensor)]
        users = sum(one.untyped_storage()._cdata == memory for one in sharing)
        return value if users == 1 else None
