# SPDX-License-Identifier: Apache-2.0
"""TapedSteps: the steps of a module whose torch calls are recorded, and made again without them.

The first call on inputs of some types and sizes runs the functions of the operators, and learns the
types and sizes of their results. The second call is recorded, with buffers for these. From the
third one on the tape is played. The functions run, too, where torch has to see them: in a call that
needs gradients, is traced, or runs in a mode of torch; where the tape fails, so that they raise the
error; and before torch 2.10, which does not describe a tensor in C.
"""

from __future__ import annotations

import threading

import torch

from bridge.annotation import Any
from bridge.caffe2.execution.net_function import Step
from bridge.caffe2.execution.recorder import compile_calls, record
from bridge.caffe2.execution.tape import MOST_SIZES
from bridge.caffe2.modules.module_tape import ModuleTape, signature_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    # Computes the outputs out of the operands by the functions. A second argument is a list, which
    # gets the layouts of the results of each step; a third one is the Buffers that steps write.
    Compute = Callable[..., list[Any]]
    Layouts = list[list[tuple[torch.Size, torch.dtype] | None] | None]


class TapedSteps:
    """Tapes of the steps of a module, by the types and sizes of operands."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._can_be_recorded = all(map(_can_be_recorded, steps))
        # By the signature: the layouts of the first call, the tape, or None if there can be none.
        self._tapes: dict[bytes, Layouts | ModuleTape | None] = {}
        self._latest: ModuleTape | None = None
        self._lock = threading.Lock()

    def __call__(self, operands: list[Any], compute: Compute) -> list[Any]:
        """Return the outputs, by a tape if all steps can be recorded, or by `compute`."""
        found = None if self._latest is None else self._play(self._latest, operands)
        if found is None and self._can_be_recorded:
            signature = signature_of(operands)
            # Another thread that learns at this time is not waited for.
            if signature is not None and self._lock.acquire(blocking=False):
                try:
                    found = self._by_signature(operands, signature, compute)
                finally:
                    self._lock.release()
        return compute(operands) if found is None else found

    def _play(self, tape: ModuleTape, operands: list[Any]) -> list[Any] | None:
        try:
            return tape(operands)
        except Exception:  # noqa: BLE001  # the functions of the operators say what is wrong
            self._latest = None
            self._tapes = {}
            return None

    def _by_signature(
        self, operands: list[Any], signature: bytes, compute: Compute
    ) -> list[Any] | None:
        """Return the outputs; None: the functions have to compute them."""
        tapes = self._tapes
        if signature not in tapes:
            layouts: Layouts = []
            first = compute(operands, layouts)
            if len(tapes) >= MOST_SIZES:
                del tapes[next(iter(tapes))]
            tapes[signature] = layouts
            return first
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
        buffers = Buffers(operands, known)
        results: list[Any]
        try:
            results, calls = record(compute, [operands, None, buffers], {})
        except Exception:  # noqa: BLE001  # the functions, without buffers, say what is wrong
            del tapes[signature]
            return None
        tapes[signature] = tape = None
        if all(isinstance(one, torch.Tensor) for one in results):
            tape = compile_calls(calls, operands, buffers.made, results, None)
        if tape is not None:
            tapes[signature] = self._latest = ModuleTape(tape, signature, buffers.made)
        return results


def _can_be_recorded(step: Step) -> bool:
    """Return whether the torch calls of a step are the same in each call on the same sizes."""
    if step.declaration is None:
        return step.function is not None
    definition = step.definition
    return (
        bool(definition.checked.is_recorded)
        and not step.declaration.strings
        and definition.kind == "cpu"
    )


def layouts_of(step: Step, given: list[Any], values: dict[str, Any], kept: Iterable[str]) -> Any:
    """Return sizes and type of each output of a step that has run; None: it has no tensor.

    given: its inputs. None: it needs no buffers, since its outputs, of which none is `kept`, have
    the memory of inputs.
    """
    found = [values.get(name) for name in step.outputs]
    memory = {one.untyped_storage()._cdata for one in given if isinstance(one, torch.Tensor)}
    tensors = [one for one in found if isinstance(one, torch.Tensor)]
    views = [one for one in tensors if one.untyped_storage()._cdata in memory]
    if views and all(one.is_contiguous() for one in views) and not {*step.outputs} & {*kept}:
        return None
    return [(one.shape, one.dtype) if isinstance(one, torch.Tensor) else None for one in found]


class Buffers:
    """The buffers that steps write, made at their turn. `made`: the buffers, in order."""

    def __init__(self, operands: Sequence[Any], layouts: Layouts) -> None:
        self.made: list[Any] = []
        self._layouts = layouts
        self._given = {one.untyped_storage()._cdata for one in operands}

    def arguments(self, i: int, step: Step, values: dict[str, Any]) -> dict[str, Any]:
        """Return the argument of step `i` that has its buffers, if its function takes any."""
        layouts, bound = self._layouts[i], step.definition.checked
        if layouts is None or step.declaration is None or bound.out_name is None:
            return {}
        if bound.reads_values or bound.sized_by or bound.forced is not None:
            return {}
        found = []
        with torch._C.DisableTorchFunction():  # these calls are not those of the step
            for o, layout in enumerate(layouts):
                buffer = None
                if layout is not None:
                    place = bound.in_place.get(o)
                    if place is not None:
                        buffer = self._in_place(step.inputs[place], layout, values)
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
        sharing = [one for one in values.values() if isinstance(one, torch.Tensor)]
        users = sum(one.untyped_storage()._cdata == memory for one in sharing)
        return value if users == 1 and memory not in self._given else None
