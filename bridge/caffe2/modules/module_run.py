# SPDX-License-Identifier: Apache-2.0
"""ModuleRun: the calls of a module that need no autograd, as runs of a net on blobs of its own.

The operators of a net keep what they decided in earlier runs, and write into the same memory again;
see `bridge.caffe2.execution.program`. The blobs share the memory of the parameters and inputs, and
nothing is written there: an operator that overwrites one writes another blob. Each call has outputs
of their own. After some runs on inputs of the same types and sizes the operators become one program
(`bridge.caffe2.execution.net_program`), unless one of them cannot be recorded.

A call that torch records or changes computes with the functions of the operators instead: one that
needs gradients, is traced, or runs in a mode of torch. So does the first call for inputs of some
types and sizes, which says what the outputs are like, and any call that fails here.
"""

from __future__ import annotations

import threading

import torch

from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.net_function import NetFunction, Step, row_major
from bridge.caffe2.execution.net_program import NetProgram, merge
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.execution.runnable_net import RunnableNet
from bridge.caffe2.execution.torch_state import is_neutral_here, is_observed
from bridge.caffe2.modules.gradient_calls import GradientCalls
from bridge.caffe2.modules.module_blobs import (
    clear,
    have_memory_of,
    put_buffers,
    share,
    take_results,
    tensors_of,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Signature = tuple[tuple[torch.Size, torch.dtype] | type, ...]
    Held = tuple[dict[str, str], dict[str, Any], dict[str, Any]]  # see `tensors_of`
    # Of each tensor the sizes, strides and type; None of one that was not written.
    Layouts = tuple[tuple[tuple[tuple[int, ...], tuple[int, ...]], torch.dtype] | None, ...]

__all__ = ["ModuleRun"]

_MOST_SIGNATURES = 64
_MOST_FAILURES = 3  # in turn
_MOST_PROGRAMS = 2  # each has the memory of its inner results; inputs of other sizes run the net
_RECORDED = (3, 4, 8)  # after so many runs on inputs of the same sizes operators may be recorded


class ModuleRun:
    """Runs the steps of a module on blobs of its own; see the module.

    steps, arguments: the operators and their arguments. inputs, parameters, outputs: names of
    blobs.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        arguments: Sequence[dict[str, Any]],
        inputs: Sequence[str],
        parameters: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        self._steps = steps
        self._arguments = arguments
        self._names = tuple(inputs), tuple(parameters), tuple(outputs)
        written = set().union(*(step.outputs for step in steps))
        self._is_possible = (
            all(map(_is_possible, steps))
            and written.issuperset(outputs)
            and not _nets_mention(steps, written.intersection((*inputs, *parameters)))
        )
        self._failures = 0
        self._net: _OwnNet | None = None
        self._lock = threading.Lock()
        # What the outputs are like for inputs of these types and sizes; None: the run failed.
        self._outputs: dict[Signature, Layouts | None] = {}
        self._programs: dict[Signature, NetProgram] = {}
        self.gradient_calls = GradientCalls(steps)
        self.program: NetProgram | None = None  # of the latest call

    def forget(self) -> None:
        """Release what runs have; it is made again."""
        self._net = self.program = None
        self._programs.clear()
        self._failures += 1
        self._is_possible = self._failures < _MOST_FAILURES

    def __call__(self, inputs: list[Any], held: Held) -> Sequence[Any] | None:
        """Return the outputs, or None if the call has to compute in another way."""
        if not self._outputs or not self._is_possible or is_observed():
            return None
        if not self._lock.acquire(blocking=False):
            return None
        signature: Signature | None = None
        try:
            net = self._net
            if net is None or not net.has_inputs(inputs):
                signature = _signature(inputs)
            else:
                assert net.signature is not None
                signature = net.signature
            expected = self._outputs.get(signature)
            if expected is None:
                return None
            if is_neutral_here():
                return self._compute(inputs, held, signature, expected)
            if not torch.is_inference_mode_enabled():
                return None
            # Tensors that are made in this mode cannot be written outside.
            with torch.inference_mode(False), torch.no_grad():
                if is_neutral_here():
                    return self._compute(inputs, held, signature, expected)
            return None
        except Exception:  # noqa: BLE001  # the functions of the operators say what is wrong
            if signature is not None:
                self._outputs[signature] = None
            self.forget()
            return None
        finally:
            self._lock.release()

    def _compute(
        self, inputs: list[Any], held: Held, signature: Signature, expected: Layouts
    ) -> Sequence[Any] | None:
        program = self._programs.get(signature)
        if program is not None:
            found = program(tuple(inputs), *held)
            if found is not None:
                self.program = program
                return found if len(expected) > 1 else [found]
        net = self._net
        if net is None:
            self._net = net = _OwnNet(self._steps, self._arguments, *self._names)
        found = net.run(inputs, tensors_of(*held), expected, signature)
        self._failures = 0
        if net.turns in _RECORDED and program is None and len(self._programs) < _MOST_PROGRAMS:
            program = net.program()
            if program is not None:
                self._programs[signature] = self.program = program
                self._net = None  # which has the memory of the inputs, and of inner results
        return found

    def learn(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        """Remember what the outputs are like for these inputs."""
        if not self._is_possible or not all(
            one is None or type(one) is torch.Tensor for one in outputs
        ):
            return
        if any(isinstance(x, torch.Tensor) and x.is_nested for x in (*inputs, *outputs)):
            return  # these have no sizes
        signature = _signature(inputs)
        if signature not in self._outputs:
            if len(self._outputs) >= _MOST_SIGNATURES:
                self._outputs.clear()
            # (in half the time of `empty`, which parses a torch.Size slowly)
            self._outputs[signature] = tuple(
                [
                    None if one is None else ((tuple(one.shape), _strides_of(one.shape)), one.dtype)
                    for one in outputs
                ]
            )


class _OwnNet:
    """A net that computes the outputs of steps, on blobs of its own.

    signature: that of the inputs of the latest run. turns: the number of runs on such inputs.
    """

    signature: Signature | None = None
    turns = 0

    def __init__(
        self,
        steps: Sequence[Step],
        arguments: Sequence[dict[str, Any]],
        inputs: Sequence[str],
        parameters: Sequence[str],
        outputs: Sequence[str],
    ) -> None:
        message, names = _net_of(steps, {*inputs, *parameters})
        table = BlobTable()
        blobs = table._blobs
        for name in (*inputs, *parameters):
            blobs[name] = Blob()
        self._runnable = RunnableNet(message, table, "Module")
        for step, definition, given in zip(
            steps, self._runnable._definitions, arguments, strict=True
        ):
            if step.declaration is not None:
                definition.checked.arguments = given
        self._inputs = tuple([blobs[name] for name in inputs])
        self._parameters = tuple([blobs[name] for name in parameters])
        self._outputs = tuple([blobs[names[name]] for name in outputs])
        # What a branch writes that may not be taken, and is looked at: a value of an earlier call
        # would be taken for one of this.
        unsure: set[str] = set().union(*(step.kept for step in steps))
        looked_at = unsure.intersection(outputs, *(step.inputs for step in steps))
        self._unsure = tuple([blobs[names[name]] for name in unsure & looked_at])
        self._sure = tuple([name not in unsure for name in outputs])

    def has_inputs(self, inputs: list[Any]) -> bool:
        """Return whether these have the memory, types and sizes of the latest run's."""
        return have_memory_of(self._inputs, inputs)

    def program(self) -> NetProgram | None:
        """Return the operators as one program, which has the memory of the blobs; None: not yet."""
        return merge(self._runnable._operators, self._inputs, self._parameters, self._outputs)

    def run(
        self, inputs: list[Any], parameters: list[Any], expected: Layouts, signature: Signature
    ) -> list[Any] | None:
        """Return the outputs; None if the net cannot compute on these tensors."""
        self.turns = self.turns + 1 if signature == self.signature else 1
        self.signature = signature
        with_grad = torch.is_grad_enabled()
        if not share(self._parameters, parameters, with_grad, False) or not share(
            self._inputs, [*map(row_major, inputs)], with_grad, True
        ):
            return None
        clear(self._unsure)
        put_buffers(
            self._outputs,
            # (no default device is set: it is a mode of torch)
            [
                torch.empty_strided(*one[0], dtype=one[1]) if is_sure and one else None
                for one, is_sure in zip(expected, self._sure, strict=True)
            ],
        )
        self._runnable._run("Module")
        return take_results(self._outputs)


def _is_possible(step: Step) -> bool:
    """Return whether a net of its own can run a step, and computes what its function does."""
    definition, declaration = step.definition, step.declaration
    if declaration is None:
        only_runs_nets = getattr(class_for(definition, "Module"), "only_runs_nets", False)
        return only_runs_nets and all(map(_is_possible, _inner_steps(step)))
    return (
        not declaration.effects & {"io", "state"}
        and not declaration.strings
        and definition.kind == "cpu"
        # The functions draw from torch's generator, an operator with a seed from one of its own.
        and ("random" not in declaration.effects or definition.random_seed is None)
    )


def _inner_steps(step: Step) -> list[Step]:
    """Return the operators of the nets that a step runs."""
    found = []
    for held in step.definition.arguments.values():
        for net in [held["n"]] if "n" in held else held.get("nets", ()):
            found += NetFunction(net, "Module").steps
    return found


def _nets_mention(steps: Sequence[Step], names: set[str]) -> bool:
    """Return whether a net that a step runs has blobs of these names: it reads no others."""
    return any(
        not names.isdisjoint((*inner.inputs, *inner.outputs))
        for step in steps
        for inner in _inner_steps(step)
    )


def _net_of(steps: Sequence[Step], kept: set[str]) -> tuple[Any, dict[str, str]]:
    """Return a NetDef of the steps that writes none of `kept`, and how its blobs are called."""
    names: dict[str, str] = {}
    used = kept.union(*(step.inputs for step in steps), *(step.outputs for step in steps))
    message = caffe2_pb2().NetDef()
    for step in steps:
        operator = message.op.add()
        operator.CopyFrom(step.definition.message())
        del operator.input[:], operator.output[:]
        operator.input.extend([names.get(name, name) for name in step.definition.inputs])
        for name in step.outputs:
            if name not in names:
                other = name
                while name in kept and other in used:
                    other += "'"
                used.add(other)
                names[name] = other
        operator.output.extend([names[name] for name in step.definition.outputs])
    return message, names


def _signature(inputs: Sequence[Any]) -> Signature:
    """Return the sizes and types of tensors; of other objects, which no net takes, their class."""
    return tuple([(x.shape, x.dtype) if isinstance(x, torch.Tensor) else type(x) for x in inputs])


def _strides_of(sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a row-major tensor."""
    strides = [1]
    for size in sizes[:0:-1]:
        strides.insert(0, strides[0] * max(size, 1))
    return tuple(strides[: len(sizes)])
