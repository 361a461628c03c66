# SPDX-License-Identifier: Apache-2.0
"""The schemas of Caffe2's operators: numbers of inputs and outputs, and which may be one blob.

Follows OpSchema, caffe2/core/operator_schema.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools

from bridge.c10.errors import EnforceKeyError, EnforceNotMet
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.definitions.schema_table import TABLE
from bridge.caffe2.definitions.schema_table_gradients import GRADIENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Container, Sequence

__all__ = ["Schema", "check_names", "declare_schema", "schema_of"]


class Schema:
    """The schema of an operator type: numbers of inputs and outputs, and in-place outputs.

    `allowed` holds pairs (input, output) that may be one blob, `forced` pairs that must be. A
    number n in `shifts` or `forced_shifts` stands for all pairs (i + n, i).

    It is parsed from text such as ``2-3:1:0>0!,2>1``; see `schema_table`.
    """

    __slots__ = ("allowed", "forced", "forced_shifts", "inputs", "outputs", "shifts", "text")

    def __init__(self, text: str) -> None:
        inputs, outputs, places = text.split(":")
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


@functools.cache
def _texts() -> dict[str, str]:
    """Return the texts of the tables by operator type."""
    rows = (word.partition(":") for word in (TABLE + GRADIENTS).split())
    return {name: text for name, _, text in rows}


def declare_schema(op_type: str, text: str) -> None:
    """Set the schema of an operator type, from text such as ``2-3:1:0>0``; see `Schema`."""
    _schemas[op_type] = Schema(text)


def schema_of(op_type: str) -> Schema:
    """Return the schema of an operator type.

    Raises EnforceNotMet, also a KeyError: the tables have no row for the type.
    """
    schema = _schemas.get(op_type)
    if schema is None:
        found = _texts().get(op_type)
        if found is None and classes_of(op_type) is not None and op_type in _schemas:
            return _schemas[op_type]  # declared by the modules that the look-up loaded
        if found is None:
            raise EnforceKeyError(
                f"Operator {op_type!r} has no schema. Add a row Name:inputs:outputs:in-place, such "
                f"as {op_type}:1:1:0>0, to bridge/caffe2/definitions/schema_table.py, or to "
                "schema_table_gradients.py for a gradient operator.",
                "schema_of",
                condition="the tables have a row for the type",
            )
        schema = _schemas[op_type] = Schema(found)
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
                # Caffe2 was asked for the first six inputs and four outputs only.
                asked = {(min(i, 5), min(o, 3)), (i, o)}
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
