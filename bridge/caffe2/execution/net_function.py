# SPDX-License-Identifier: Apache-2.0
"""NetFunction: a net as a function of tensors, for modules and compiled nets.

Each operator that is declared as a function becomes a call of it; names of blobs become local
values, so nothing is overwritten. Other operators, those with state or effects, run on a workspace
of their own that holds their inputs; torch cannot trace these. An operator that runs nets, such as
If, also has the inputs and outputs of these.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, groupby

from numpy import array, ndarray

from bridge.annotation import Any
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.device_option import device_of_option
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.string_arrays import Strings
from bridge.caffe2.blobs.torch_io import operand
from bridge.caffe2.definitions.ssa import reads_and_writes
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.declaration import Bound
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_operator import FunctionOperator
from bridge.caffe2.execution.operator import failure
from bridge.caffe2.execution.registry import class_for, create_operator


class Step:
    """One operator of a net: its function and arguments, and the names of its blobs.

    `function` is None for an operator that is a class; `run` runs it on a workspace of its own. A
    class that computes the same as a function has it as its attribute `as_function`; the function
    does not make blobs share memory.
    `reason`: why torch cannot trace it, or None. `inputs`, `outputs`: also of the nets that the
    operator runs. `retained`: outputs that keep their value if such a net does not write them, or
    that an operator reads itself, as Accumulate does (the attribute `reads_outputs` of its class).
    """

    def __init__(self, definition: Definition, position: int, caller: str) -> None:
        cls = class_for(definition, caller)
        self.definition = definition
        self.position = position
        # An operator whose class keeps nothing of a run but its blobs, to be used again.
        self.spare: dict[int, Any] | None = {} if getattr(cls, "is_stateless", False) else None
        reads, writes = _names_of_nets(definition)
        # A blob may be several inputs; the inputs of inner nets are added once.
        more = dict.fromkeys(name for name in reads if name not in definition.inputs)
        self.inputs = (*definition.inputs, *more)
        more = dict.fromkeys(name for name in writes if name not in definition.outputs)
        self.outputs = (*definition.outputs, *more)
        self.reads_outputs = getattr(cls, "reads_outputs", False)
        self.retained = frozenset(self.outputs if self.reads_outputs else writes)
        self.function = getattr(cls, "as_function", None)
        self.declaration = None
        self.arguments: dict[str, Any] = {}
        if issubclass(cls, FunctionOperator):
            bound = definition.checked
            self.function, self.declaration = bound.function, bound.declaration
            self.arguments = dict(bound.arguments)
        self.reason = None if self.is_pure else "has state or effects"
        if self.declaration is not None and self.declaration.reads_values(len(self.inputs)):
            self.reason = "reads the values of elements"

    @property
    def is_pure(self) -> bool:
        """Whether it does nothing but compute its outputs."""
        if self.declaration is None:
            return self.function is not None
        return not self.declaration.effects & {"io", "state"}

    def with_is_test(self, is_test: bool | None) -> dict[str, Any]:
        """Return the arguments, with `is_test` replaced unless it is None or not an argument."""
        if is_test is None or "is_test" not in self.arguments:
            return self.arguments
        changed = {**self.arguments, "is_test": type(self.arguments["is_test"])(is_test)}
        if self.declaration is not None and "OutputCount" in self.declaration.filled:
            changed[self.declaration.filled["OutputCount"]] = 0  # the net's is for its own mode
        return changed

    def call(
        self, values: dict[str, Any], arguments: dict[str, Any], types: str = "floating"
    ) -> None:
        """Compute the outputs from the inputs in `values`, and put them there.

        types: of inputs, "exact" as of blobs, "floating" also others (see `check_types`), or
        "unchecked". Raises EnforceNotMet, also a TypeError: an input has a type that is not taken.
        """
        assert self.function is not None
        inputs = [row_major(values[name]) for name in self.inputs]
        if self.declaration is not None and types != "unchecked":
            check_types(self.definition.checked, inputs, types == "exact")
        found = self.function(*inputs, **arguments)
        if not isinstance(found, (tuple, list)):
            found = (found,)
        # (torch 2.6 traces strict=False as strict=True)
        for name, value in zip(self.outputs, found):  # noqa: B905
            is_text = isinstance(value, (Strings, ndarray))
            values[name] = _blob_of(value, False) if is_text else value

    def placed(self, arguments: dict[str, Any], device: Any) -> dict[str, Any]:
        """Return the arguments, with `device` for the parameter that the engine fills with it."""
        filled = self.declaration.filled if self.declaration is not None else {}
        if "TargetDevice" not in filled:
            return arguments
        return {**arguments, filled["TargetDevice"]: device}

    def run(self, values: dict[str, Any]) -> None:
        """Compute the outputs by the operator, on a workspace of its own.

        Inputs in place are copied before. Outputs are torch tensors, or the objects in the blobs.
        Raises EnforceNotMet: the operator failed.
        """
        table = BlobTable()
        for name in {*self.inputs, *self.retained.intersection(values)}:
            value = values[name]
            table._blobs[name] = _blob_of(row_major(value), name in self.outputs)
        try:
            operator: Any = self.spare.pop(0, None) if self.spare else None
            if operator is None:
                operator = create_operator(self.definition, table, "Module")
            else:
                operator.__init__(self.definition, table)
            operator._run()
        except Exception as cause:
            raise self.failure(cause) from cause
        if self.spare is not None:
            self.spare[0] = operator
        for name in self.outputs:
            blob = table._blobs.get(name)
            # A branch that was not taken writes nothing.
            is_empty = blob is None or (blob._tensor is None and blob._object is None)
            if name not in self.retained or not is_empty:
                values[name] = _value_of(table._blobs[name])

    def failure(self, cause: Exception) -> EnforceNotMet:
        """Return the error of the operator, to be raised from `cause`."""
        return failure(self.definition, cause, "Module", f", position {self.position},")

    def __repr__(self) -> str:
        return f"<Step {self.position}: {self.definition}>"


def row_major(value: Any) -> Any:
    """Return an input as the functions of operators take it: a tensor of other strides is copied.

    Others than tensors, blobs of objects and None, are returned as they are.
    """
    if not hasattr(value, "is_contiguous") or value.is_contiguous():
        return value
    return value.contiguous()


def check_types(bound: Bound, inputs: Sequence[Any], exact: bool = False) -> None:
    """Raise EnforceNotMet, also a TypeError, if a function does not take the types of tensors.

    Kernels rely on them. Unless `exact`, it takes all floating-point types where it takes one: a
    module may be moved to another. Blobs of objects, and None, are not looked at.
    """
    for i, (x, allowed) in enumerate(zip(inputs, bound.types, strict=False)):
        if allowed is None or not hasattr(x, "is_floating_point"):
            continue
        dtype = x.dtype
        if isinstance(allowed, int):
            accepted: tuple[Any, ...] = (getattr(inputs[allowed], "dtype", dtype),)
        else:
            accepted = _types_of_torch(allowed)
        if dtype in accepted:
            continue
        any_float = not exact and any(one.is_floating_point for one in accepted)
        if any_float and dtype.is_floating_point:
            continue
        names = [
            TypeMeta.Make(one).name for one in accepted if not (any_float and one.is_floating_point)
        ]
        if any_float:
            names.append("floating-point types")
        raise EnforceTypeError(
            f"Input {i} has the type {TypeMeta.Make(dtype).name}; {bound.declaration.name} takes "
            f"{', '.join(names) or 'none of torch'} there.",
            bound.declaration.name,
            condition="IsType(T)",
        )


@functools.cache
def _types_of_torch(types: tuple[TypeMeta, ...]) -> tuple[Any, ...]:
    """Return those types that torch has, as its own."""
    return tuple(one.torch for one in types if one.torch is not None)


def _blob_of(value: Any, is_copied: bool) -> Blob:
    """Return a value as a blob; `is_copied`: another one than `value`, and a copy of a tensor."""
    blob = Blob()
    if isinstance(value, Strings):
        blob.feed(array(value.items, object).reshape(tuple(value.shape)))
    elif isinstance(value, ndarray):
        blob.feed(value)
    elif not isinstance(value, Blob):
        blob.feed(value.detach().clone() if is_copied else value.detach())
    elif is_copied and value._tensor is not None and value._tensor.storage_initialized():
        blob._set_tensor(value._tensor.Clone(), True)
    elif is_copied and value._object is not None:
        blob._set_object(value._object, value._meta)
    else:
        return value
    return blob


def _value_of(blob: Blob) -> Any:
    """Return the torch tensor of a blob, or the blob itself if torch cannot hold its value."""
    tensor = blob._tensor
    if tensor is None or not tensor.dtype() or not tensor.dtype().is_pod:
        return blob
    return operand(tensor)


class NetFunction:
    """The operators of a net as steps, in order.

    message: the NetDef. `reads`: names that are read before they are written, in order. `writes`:
    names that are written.

    Raises EnforceNotMet: an operator cannot be created; the error names it and its position.
    """

    def __init__(self, message: Any, caller: str) -> None:
        self.name: str = message.name
        option = message.device_option if message.HasField("device_option") else None
        if option is not None:
            device_of_option(option)
        self.steps: list[Step] = []
        for position, operator in enumerate(message.op):
            definition = Definition(operator, None, option, caller)
            try:
                self.steps.append(Step(definition, position, caller))
            except Exception as cause:
                where = f", position {position} of net {self.name!r},"
                raise failure(definition, cause, caller, where) from cause
        self._overwritten = self._find_overwritten()
        self._refuse_shared_memory()
        self.reads, self.writes = names_of(self.steps)

    def _find_overwritten(self) -> list[dict[str, list[Step]]]:
        """Return for each step the other names whose memory it writes, and who shares it."""
        # For a name: all names that have its memory, and the steps that made them share it.
        memory: dict[str, tuple[set[str], list[Step]]] = {}
        found = []
        for step in self.steps:
            others: dict[str, list[Step]] = {}
            is_alias = step.declaration is None and step.function is not None
            for i, name in enumerate(step.outputs):
                if not is_alias:
                    names, sharing = memory.get(name, (set(), []))
                    others.update((one, sharing) for one in names.difference(step.outputs))
                elif step.inputs[i] != name:
                    memory.pop(name, (set(), []))[0].discard(name)
                    memory[name] = memory.setdefault(step.inputs[i], ({step.inputs[i]}, []))
                    memory[name][0].add(name)
                    memory[name][1].append(step)
            found.append(others)
        return found

    def _refuse_shared_memory(self) -> None:
        """Take the function from steps whose outputs share memory that is overwritten later."""
        for others in self._overwritten:
            for step in chain.from_iterable(others.values()):
                step.function, step.reason = None, "shares memory that is overwritten later"

    def check_outputs(self, outputs: Iterable[str], caller: str) -> None:
        """Raise EnforceNotMet where a module would give other values than RunNet.

        There, of two blobs that share memory, one has the value that is written to the other.
        """
        stale: dict[str, list[Step]] = {}  # names that have other values in a net
        for step, others in zip(self.steps, self._overwritten, strict=True):
            _check_stale(step.inputs, stale, caller)
            stale.update(others)
            for name in step.outputs:
                stale.pop(name, None)
        _check_stale(outputs, stale, caller)

    def needed_for(self, outputs: Iterable[str]) -> list[Step]:
        """Return the steps that compute `outputs`, and those that have effects."""
        wanted = set(outputs)
        kept = []
        for step in reversed(self.steps):
            if step.is_pure and wanted.isdisjoint(step.outputs):
                continue
            kept.append(step)
            wanted.difference_update(set(step.outputs) - step.retained)
            wanted.update(step.inputs)
        return kept[::-1]


def _check_stale(names: Iterable[str], stale: dict[str, list[Step]], caller: str) -> None:
    for name in names:
        if name in stale:
            alias = stale[name][-1].definition
            raise EnforceNotMet(
                f"In a net, {alias} makes blobs share memory, and {name!r} is overwritten with the "
                f"other one; in a module, each has its own value. Use Copy for {alias.type}, or do "
                f"not read {name!r} afterwards.",
                caller,
            )


def _names_of_nets(definition: Definition) -> tuple[list[str], list[str]]:
    """Return the names that nets among the arguments read, before they write them, and write."""
    reads: dict[str, None] = {}
    writes: dict[str, None] = {}
    first: list[str] = []
    for argument in sorted(definition.arguments):
        held = definition.arguments[argument]
        for net in [held["n"]] if "n" in held else held.get("nets", ()):
            own_reads, own_writes = _names_of_net(net)
            reads.update((name, None) for name in own_reads if name not in first)
            writes.update(dict.fromkeys(own_writes))
            if argument == "cond_net":  # of While: it runs before the other one
                first = own_writes
    return list(reads), list(writes)


def _names_of_net(net: Any) -> tuple[list[str], list[str]]:
    found = []
    for operator in net.op:
        reads, writes = _names_of_nets(Definition(operator, None, None, "Module"))
        found.append(((*operator.input, *reads), (*operator.output, *writes)))
    return reads_and_writes(found)


def names_of(steps: Sequence[Step]) -> tuple[list[str], list[str]]:
    """Return the names that are read before they are written, and those that are written."""
    return reads_and_writes((step.inputs, step.outputs) for step in steps)


def parts_of(steps: Sequence[Step], kind: Callable[[Step], Any]) -> list[range]:
    """Return the numbers of steps in parts: successive ones of the same kind."""
    found: list[range] = []
    for _, group in groupby(range(len(steps)), lambda i: kind(steps[i])):
        numbers = list(group)
        found.append(range(numbers[0], numbers[-1] + 1))
    return found


def needed_after(steps: Sequence[Step], part: range, outputs: Iterable[str]) -> list[str]:
    """Return the names that a part writes, and that `outputs` have or later steps read."""
    later = steps[part.stop :]
    wanted = {*outputs, *names_of(later)[0]}.union(*(step.retained for step in later))
    return [name for name in names_of(steps[part.start : part.stop])[1] if name in wanted]


def last_uses(steps: Sequence[Step], kept: Collection[str]) -> list[tuple[str, ...]]:
    """Return for each step the names that no later step reads, except those in `kept`."""
    seen = set(kept)
    found = []
    for step in reversed(steps):
        names = dict.fromkeys((*step.inputs, *step.outputs))
        found.append(tuple(name for name in names if name not in seen))
        seen.update(names)
        # A name that is written anew here is another value before.
        seen.difference_update(
            name
            for name in step.outputs
            if name not in step.inputs and name not in step.retained and name not in kept
        )
    return found[::-1]
