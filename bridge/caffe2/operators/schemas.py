# SPDX-License-Identifier: Apache-2.0
"""How many inputs and outputs an operator of Caffe2's own has, and which may be one blob."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.schema_table import TABLE
from bridge.caffe2.operators.schema_table_gradients import GRADIENTS

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from collections.abc import Container

    from bridge.caffe2.operator_def import Definition

__all__ = ["Schema", "check_definition", "schema_of"]


class Schema:
    """What an operator type takes: numbers of inputs and outputs, and outputs in place.

    `allowed` are pairs of input and output that may be one blob, `forced` pairs that must be.
    Follows OpSchema, caffe2/core/operator_schema.h, PyTorch 1.8.1.
    """

    __slots__ = ("allowed", "forced", "inputs", "outputs", "text")

    def __init__(self, text: str) -> None:
        inputs, outputs, places = text.split(":")
        self.text = text
        self.inputs = _counts(inputs)
        self.outputs = _counts(outputs)
        pairs = [(place.rstrip("!"), place.endswith("!")) for place in places.split(",") if place]
        self.forced = [_pair(pair) for pair, forced in pairs if forced]
        self.allowed = {_pair(pair) for pair, _ in pairs}


def _counts(text: str) -> Container[int]:
    if "|" in text:
        return frozenset(map(int, text.split("|")))
    first, _, last = text.partition("-")
    if last.startswith("*"):
        return range(int(first), 2**31, int(last[2:] or 1))
    return range(int(first), int(last or first) + 1)


def _pair(text: str) -> tuple[int, int]:
    i, _, o = text.partition(">")
    return int(i), int(o)


_texts: dict[str, str] = {}
_schemas: dict[str, Schema] = {}


def schema_of(op_type: str) -> Schema:
    """Give the schema of a built-in operator type. Raises KeyError: it has none."""
    schema = _schemas.get(op_type)
    if schema is None:
        if not _texts:
            for word in (TABLE + GRADIENTS).split():
                name, _, text = word.partition(":")
                _texts[name] = text
        schema = _schemas[op_type] = Schema(_texts[op_type])
    return schema


def check_definition(definition: Definition) -> dict[int, int] | None:
    """Check the counts and places of an operator; give its outputs in place, by their inputs.

    Raises EnforceNotMet: a wrong number of inputs or outputs, an output that may not be the blob
    of an input, or is not and must.
    """
    schema = _schemas.get(definition.type) or schema_of(definition.type)
    inputs, outputs = definition.inputs, definition.outputs
    if len(inputs) not in schema.inputs:
        _refuse(f"is given {len(inputs)} inputs", definition, schema)
    if len(outputs) not in schema.outputs:
        _refuse(f"is given {len(outputs)} outputs", definition, schema)
    for i, o in schema.forced:
        if i < len(inputs) and o < len(outputs) and inputs[i] != outputs[o]:
            _refuse(f"works in place: output {o} has to be input {i}", definition, schema)
    if len(inputs) == 1 and len(outputs) == 1:  # most of them
        if inputs[0] != outputs[0]:
            return None
    elif set(inputs).isdisjoint(outputs):
        return None
    found: dict[int, int] = {}
    for o, output in enumerate(outputs):
        for i, name in enumerate(inputs):
            if name == output:
                # The real table was read for the first six inputs and four outputs.
                if (min(i, 5), min(o, 3)) not in schema.allowed:
                    _refuse(f"cannot have input {i} as output {o}", definition, schema)
                found.setdefault(o, i)
    return found


def _refuse(what: str, definition: Definition, schema: Schema) -> None:
    inputs, outputs, places = schema.text.split(":")
    pairs = f", in place {places.rstrip('!')}" if places else ""
    raise EnforceNotMet(
        f"{definition.type} {what}; it takes inputs: {inputs}, outputs: {outputs}{pairs}.",
        "the definition passes the schema",
        "CreateOperator",
    )
