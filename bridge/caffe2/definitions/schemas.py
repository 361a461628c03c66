# SPDX-License-Identifier: Apache-2.0
"""Declarations of operators: numbers of inputs and outputs, which may be one blob, gradients.

Follows OpSchema, caffe2/core/operator_schema.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceNotMet, EnforceValueError
from bridge.caffe2.definitions.operator_types import load_built_in

_ASKED = 6, 4  # the inputs and outputs for which Caffe2 was asked whether they may be one blob


class Schema:
    """The schema of an operator type: numbers of inputs and outputs, and in-place outputs.

    `allowed` holds pairs (input, output) that may be one blob, `forced` pairs that must be. A
    number n in `shifts` or `forced_shifts` stands for all pairs (i + n, i).

    It is parsed from text ``inputs:outputs:in-place``, such as ``2-3:1:0>0!,2>1``. A count is
    ``2``, ``1-3``, ``1-*``, ``1|3`` or ``2n+1`` (3, 5, 7, ...). In-place is a list of pairs
    ``input>output`` that may be one blob, or must be if followed by ``!``; ``1>0*`` stands for 1>0,
    2>1, and so on, and ``any`` for all pairs. Caffe2's were recorded by
    tests/conformance/operators/record_schemas.py, for the first six inputs and four outputs.
    """

    __slots__ = ("allowed", "forced", "forced_shifts", "inputs", "outputs", "shifts", "text")

    def __init__(self, text: str) -> None:
        inputs, outputs, places = text.split(":")
        if places == "any":
            places = ",".join(f"{i}>{o}" for i in range(_ASKED[0]) for o in range(_ASKED[1]))
        self.text = text
        self.inputs = _counts(inputs)
        self.outputs = _counts(outputs)
        pairs = [(place.rstrip("!"), place.endswith("!")) for place in places.split(",") if place]
        single = [(_pair(pair), forced) for pair, forced in pairs if not pair.endswith("*")]
        shifted = [(_pair(pair.rstrip("*")), forced) for pair, forced in pairs if "*" in pair]
        self.forced = [pair for pair, forced in single if forced]
        self.allowed = {pair for pair, _ in single}
        self.forced_shifts = [i - o for (i, o), forced in shifted if forced]
        self.shifts = [i - o for (i, o), _ in shifted]


def _counts(text: str) -> Container[int]:
    if "|" in text:
        return frozenset(map(int, text.split("|")))
    step, several, offset = text.partition("n")
    if several:
        return range(int(step) + int(offset or 0), 2**31, int(step))
    first, _, last = text.partition("-")
    if last == "*":
        return range(int(first), 2**31)
    return range(int(first), int(last or first) + 1)


def _pair(text: str) -> tuple[int, int]:
    i, _, o = text.partition(">")
    return int(i), int(o)


_schemas: dict[str, Schema] = {}
_gradients: dict[str, Any] = {}
_WORDS = ("none", "undefined", "unimplemented")


def parse_schema(inputs: Any, outputs: Any, inplace: Any) -> Schema:
    """Return a schema, as `operator` declares it. Raises EnforceNotMet, also a ValueError."""
    text = f"{inputs}:{outputs}:{places_text(inplace)}"
    try:
        return Schema(text)
    except ValueError as cause:
        raise EnforceValueError(
            f"{inputs!r} inputs, {outputs!r} outputs and places {inplace!r} are not a schema; "
            "numbers are as in 2, '1-3' or '1-*', places as in [(0, 0)] or '0>0'.",
            "operator",
        ) from cause


def places_text(inplace: Any) -> str:
    """Return pairs (input, output) as the text of a schema, such as ``0>0,1>0``."""
    if inplace is None:
        return ""
    if isinstance(inplace, str):
        return inplace.replace(" ", "")
    try:
        if isinstance(inplace, dict):
            pairs = [(i, o) for o, i in inplace.items()]
        elif len(inplace) == 2 and all(isinstance(one, int) for one in inplace):
            pairs = [tuple(inplace)]
        else:
            pairs = [(int(i), int(o)) for i, o in inplace]
    except (TypeError, ValueError) as cause:
        raise EnforceValueError(
            f"{inplace!r} are not pairs of an input and an output, as in [(0, 0)].", "operator"
        ) from cause
    return ",".join(f"{i}>{o}" for i, o in pairs)


def declare_schema(op_type: str, schema: Schema, is_built_in: bool = False) -> None:
    """Set the schema of an operator type.

    is_built_in: a schema that a user declared for the type stays.
    """
    if not is_built_in or op_type not in _schemas:
        _schemas[op_type] = schema


def declare_gradient(op_type: str, gradient: Any, is_built_in: bool = False) -> None:
    """Set the gradient of an operator type, as `check_gradient` takes it.

    is_built_in: a gradient that a user declared for the type stays.
    """
    if not is_built_in or op_type not in _gradients:
        _gradients[op_type] = gradient


def check_gradient(gradient: Any) -> None:
    """Raise EnforceNotMet, also a ValueError, if a gradient is none that can be declared.

    gradient: a pattern, or "none", "undefined" or "unimplemented"; or a function of the operator
    and the gradients of its outputs, as `GradientRegistry.RegisterGradient` takes, or one of a
    GradientMaker alone, named `maker`.
    """
    if callable(gradient) or (
        isinstance(gradient, str) and (gradient in _WORDS or ">" in gradient)
    ):
        return
    raise EnforceValueError(
        f"{gradient!r} is not a gradient: give a pattern, such as 'ReluGradient o0 g0 > 0', one of "
        f"{_WORDS}, or a function.",
        "operator",
    )


def gradient_of(op_type: str) -> Any:
    """Return the gradient that is declared with an operator type, or None."""
    if op_type not in _gradients:
        load_built_in(op_type)
    return _gradients.get(op_type)


def schema_of(op_type: str) -> Schema:
    """Return the schema of an operator type.

    Raises EnforceNotMet, also a KeyError: none is declared for the type.
    """
    if op_type not in _schemas:
        load_built_in(op_type)
    schema = _schemas.get(op_type)
    if schema is None:
        raise EnforceKeyError(
            f"Operator {op_type!r} has no schema. Declare it where the operator is registered, as "
            f"in register_operator({op_type!r}, inputs='1-2', outputs='1', inplace='0>0').",
            "schema_of",
            condition="a schema is declared for the type",
        )
    return schema


def check_names(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str]
) -> dict[int, int] | None:
    """Check the inputs and outputs of an operator; return a dict from in-place outputs to inputs.

    The result holds positions, and is None if no output is an input. Raises EnforceNotMet: a wrong
    number of inputs or outputs; an output that is also an input and must not be, or must be and is
    not; the type has no schema (also a KeyError).
    """
    schema = _schemas.get(op_type) or schema_of(op_type)
    if len(inputs) not in schema.inputs:
        _refuse(f"is given {len(inputs)} inputs", op_type, schema)
    if len(outputs) not in schema.outputs:
        _refuse(f"is given {len(outputs)} outputs", op_type, schema)
    for i, o in schema.forced:
        if i < len(inputs) and o < len(outputs) and inputs[i] != outputs[o]:
            _refuse(f"works in place: output {o} has to be input {i}", op_type, schema)
    for shift in schema.forced_shifts:
        for o, (name, output) in enumerate(zip(inputs[shift:], outputs, strict=False)):
            if name != output:
                _refuse(f"works in place: output {o} has to be input {o + shift}", op_type, schema)
    if len(inputs) == 1 and len(outputs) == 1:  # the most frequent case
        if inputs[0] != outputs[0]:
            return None
    elif set(inputs).isdisjoint(outputs):
        return None
    found: dict[int, int] = {}
    for o, output in enumerate(outputs):
        for i, name in enumerate(inputs):
            if name == output:
                asked = {(min(i, _ASKED[0] - 1), min(o, _ASKED[1] - 1)), (i, o)}
                known = not asked.isdisjoint(schema.allowed) or i - o in schema.shifts
                if not known:
                    what = f"cannot work in place, with input {i} as output {o}"
                    _refuse(what, op_type, schema)
                found.setdefault(o, i)
    return found


def _counted(text: str, what: str) -> str:
    """Return a count of the table in words, such as "1 to 2 inputs" for ``1-2``."""
    words = text.replace("-*", " or more").replace("|", " or ").replace("-", " to ")
    return f"{words} {what}" if text == "1" else f"{words} {what}s"


def _refuse(what: str, op_type: str, schema: Schema) -> None:
    inputs, outputs, _ = schema.text.split(":")
    takes = f"{_counted(inputs, 'input')} and {_counted(outputs, 'output')}"
    raise EnforceNotMet(
        f"{op_type} {what}; it takes {takes}.",
        "CreateOperator",
        condition="the definition passes the schema",
    )
