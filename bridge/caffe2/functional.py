# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.functional``: operators as functions of arrays.

>>> import numpy as np
>>> from bridge.caffe2.functional import Functional
>>> result = Functional.Relu(np.array([-1.0, 2.0], np.float32))
>>> result[0], result["output_0"].dtype
(array([0., 2.], dtype=float32), dtype('float32'))
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceValueError
from bridge.caffe2 import core, workspace
from bridge.caffe2.definitions.op_schema import OpSchema
from bridge.caffe2.definitions.schemas import schema_of

__all__ = ["Functional"]


class _Functional:
    """``Functional.TYPE(*arrays, **arguments)`` runs an operator in a workspace of its own.

    The result is a named tuple of arrays, also with the names of outputs in brackets: ``output_0``,
    and ``input_0`` for an output that has to be input 0 in place. num_output: the number of
    outputs, required where the operator type has any number of them. device_option: the device of
    the inputs and the operator.

    Raises EnforceNotMet: there is no such type (also a KeyError), it does not take these numbers of
    inputs and outputs (also a ValueError), or the operator fails.
    """

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("__"):
            raise AttributeError(op_type)
        return lambda *inputs, **arguments: _run(op_type, inputs, **arguments)


def _run(
    op_type: str, values: tuple[Any, ...], num_output: int | None = None, **arguments: Any
) -> Any:
    schema_of(op_type)  # (raises for a type that is not known)
    schema = OpSchema(op_type)
    inputs = [f"input_{i}" for i in range(len(values))]
    count = schema.CalculateOutput(len(inputs)) if num_output is None else num_output
    if count == -1:
        count = schema.max_output
    if count == schema.inf:
        raise EnforceValueError(
            f"{op_type} has any number of outputs: say how many by num_output.", "Functional"
        )
    if not schema.num_inputs_outputs_allowed(len(inputs), count):
        raise EnforceValueError(
            f"{op_type} does not take {len(inputs)} inputs and {count} outputs.", "Functional"
        )
    outputs = [f"output_{o}" for o in range(count)]
    for i, name in enumerate(inputs):
        for o in range(count):
            if schema.inplace_enforced(i, o):
                outputs[o] = name
    own = workspace.Workspace()
    for name, value in zip(inputs, values, strict=True):
        own.feed_blob(name, value, arguments.get("device_option"))
    own.run(core.CreateOperator(op_type, inputs, outputs, **arguments))
    return _outputs(outputs)(*map(own.fetch_blob, outputs))


def _outputs(names: list[str]) -> Any:
    """Return a class of named tuples that takes names in brackets, too."""
    make: Any = namedtuple
    base: Any = make("output", names, rename=True)

    class Output(base):  # type: ignore[misc]  # a class made here
        __slots__ = ()

        def __getitem__(self, key: Any) -> Any:
            return tuple.__getitem__(self, names.index(key) if isinstance(key, str) else key)

    Output.__name__ = Output.__qualname__ = "output"
    return Output


Functional = _Functional()
