# SPDX-License-Identifier: Apache-2.0
"""OpSchema: the schema of an operator type, for tools that print or call operators by it.

Follows the class OpSchema of caffe2/python/pybind_state.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Container

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.definitions.operator_types import classes_of
from bridge.caffe2.definitions.schemas import schema_of

_UNLIMITED = 2**31 - 1


class OpSchema:
    """The schema of an operator type: ``OpSchema.get("Conv").max_input``.

    `min_input`, `max_input`, `min_output`, `max_output`: the least and greatest numbers of blobs;
    `inf` stands for any. `doc`: the docstring of the operator, if it has one. `input_desc`,
    `output_desc`: pairs (name, text). `args`: the arguments, with their names. `file`: where the
    operator is implemented.

    >>> schema = OpSchema.get("Conv")
    >>> schema.min_input, schema.max_input, [name for name, _ in schema.input_desc]
    (2, 3, ['x', 'filter', 'bias'])
    >>> schema.num_inputs_allowed(4), OpSchema.get("Concat").max_input == OpSchema.inf
    (False, True)
    """

    inf = _UNLIMITED
    private = False

    class Argument:
        """An argument: its `name`, `description`, and whether it is `required`."""

        def __init__(self, name: str, description: str, required: bool) -> None:
            self.name, self.description, self.required = name, description, required

    def __init__(self, op_type: str) -> None:
        self._schema = schema_of(op_type)
        found = classes_of(op_type) or {}
        cls: Any = next(iter(found.values()), None)
        declaration = getattr(cls, "_declaration", None)
        source = declaration.function if declaration is not None else cls
        self.doc = (inspect.getdoc(source) or "") if source is not None else ""
        module = sys.modules.get(getattr(source, "__module__", ""))
        self.file = getattr(module, "__file__", None) or ""
        self.line = 0
        self.min_input, self.max_input = _bounds(self._schema.inputs)
        self.min_output, self.max_output = _bounds(self._schema.outputs)
        inputs = declaration.inputs if declaration is not None else ()
        self.input_desc = [(name, "") for name in inputs]
        self.output_desc: list[tuple[str, str]] = []
        arguments = declaration.arguments if declaration is not None else ()
        self.args = [self.Argument(one.name, "", one.is_required) for one in arguments]

    @staticmethod
    def get(op_type: str) -> OpSchema | None:
        """Return the schema of an operator type, None for a type that is not known."""
        try:
            return OpSchema(op_type)
        except EnforceKeyError:
            return None

    def num_inputs_allowed(self, count: int) -> bool:
        """Return whether the operator takes that number of inputs."""
        return count in self._schema.inputs

    def num_outputs_allowed(self, count: int) -> bool:
        """Return whether the operator takes that number of outputs."""
        return count in self._schema.outputs

    def num_inputs_outputs_allowed(self, inputs: int, outputs: int) -> bool:
        """Return whether the operator takes these numbers of inputs and outputs."""
        return self.num_inputs_allowed(inputs) and self.num_outputs_allowed(outputs)

    def inplace_enforced(self, i: int, o: int) -> bool:
        """Return whether output `o` has to be the blob of input `i`."""
        return (i, o) in self._schema.forced or i - o in self._schema.forced_shifts

    def CalculateOutput(self, inputs: int) -> int:
        """Return the number of outputs for a number of inputs, -1 if it may vary."""
        return self.min_output if self.min_output == self.max_output else -1


def _bounds(counts: Container[int]) -> tuple[int, int]:
    """Return the least and greatest of some counts: a range, or a set of a few."""
    if isinstance(counts, range):
        return counts[0], _UNLIMITED if counts.stop >= _UNLIMITED else counts[-1]
    assert isinstance(counts, frozenset)
    return min(counts), max(counts)
