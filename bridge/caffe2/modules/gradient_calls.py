# SPDX-License-Identifier: Apache-2.0
"""GradientCalls: the calls of a module that need gradients, without the operators' functions.

The functions decide by types, sizes and arguments which torch functions they call; `recorder` says
when not. So the torch calls of one call of a module are recorded, and made again for inputs and
parameters of the same types and sizes. torch records them for the backward pass as it does those of
the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.caffe2.execution.net_function import Step
from bridge.caffe2.execution.recorder import compile_calls, record
from bridge.caffe2.modules.module_blobs import tensors_of
from bridge.caffe2.modules.recorded_calls import RecordedCalls, gradient_signature

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Held = tuple[dict[str, str], dict[str, Any], dict[str, Any]]  # see `tensors_of`

__all__ = ["GradientCalls"]

_MOST = 16


class GradientCalls:
    """The recorded calls of steps, for inputs of some types and sizes; see the module."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._is_possible = all(map(_is_recorded, steps))
        # None: the calls cannot be made without the functions. False: they are recorded next time.
        self._recorded: dict[bytes, RecordedCalls | bool | None] = {}

    def __call__(
        self, inputs: list[Any], held: Held, compute: Callable[[list[Any]], list[Any]]
    ) -> list[Any] | None:
        """Return the outputs, or None if no gradients are wanted, or to `compute` as usual."""
        if not self._is_possible:
            return None
        signature = gradient_signature(inputs, *held)
        if signature is None:
            return None
        recorded = self._recorded.get(signature)
        if isinstance(recorded, RecordedCalls):
            try:
                return recorded(inputs, *held)
            except Exception:  # noqa: BLE001  # the functions of the operators say what is wrong
                self._recorded[signature] = None
                return None
        if signature not in self._recorded:
            if len(self._recorded) >= _MOST:
                self._recorded.clear()
            self._recorded[signature] = False
        elif recorded is False:
            operands = [*inputs, *tensors_of(*held)]
            if len(set(map(id, operands))) < len(operands):
                return None  # a recording knows them by their tensors
            results, calls = record(compute, [inputs], {})
            self._recorded[signature] = _compiled(calls, operands, results)
            return list(results)
        return None


def _compiled(calls: Any, operands: Sequence[Any], results: Sequence[Any]) -> RecordedCalls | None:
    found = compile_calls(calls, operands, [], results, {})
    if found is None:
        return None
    compiled, slots, places = found
    if places is None or min(places) < 0:  # an output that no operator writes
        return None
    return RecordedCalls(compiled, slots, places)


def _is_recorded(step: Step) -> bool:
    if step.declaration is None:
        return step.function is not None
    return bool(step.definition.checked.is_recorded)
