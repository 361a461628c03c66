# SPDX-License-Identifier: Apache-2.0
"""CreateOperator, DeviceOption, OpAlmostEqual: messages of operators and devices.

Follows caffe2/python/core.py and utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceTypeError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, copied, set_fields
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.definitions.blob_reference import references

# Called with each new OperatorDef: immediate mode runs it.
observers: list[Callable[[Any], None]] = []


def CreateOperator(
    operator_type: str,
    inputs: Any,
    outputs: Any,
    name: str = "",
    control_input: Any = None,
    device_option: Any = None,
    arg: Any = None,
    engine: str | None = None,
    debug_info: str | None = None,
    **kwargs: Any,
) -> Any:
    """Return an OperatorDef.

    inputs, outputs: a name, a BlobReference, or a list of them; names get the prefix of the current
    name scope. control_input: likewise. device_option: a DeviceOption; None is the one of the
    current device scope, if any. arg: a list of Arguments. engine: the implementation to prefer.
    debug_info: text that is shown when the operator fails. Further keywords become arguments (see
    `MakeArgument`) unless they are None; random_seed is set in the device option.

    In immediate mode (``workspace.StartImmediate``) the operator also runs at once.

    Raises EnforceNotMet, also a TypeError or ValueError: a value that a field of the message cannot
    hold, or an input or output that is not a name.

    >>> from bridge.caffe2 import core
    >>> op = core.CreateOperator("FC", ["x", "w", "b"], "y", axis=1)
    >>> op.type, list(op.input), list(op.output), op.arg[0].i
    ('FC', ['x', 'w', 'b'], ['y'], 1)
    """
    caller = "CreateOperator"
    operator = caffe2_pb2().OperatorDef()
    if os.environ.get("CAFFE2_DEBUG"):
        import traceback

        operator.debug_info = "".join(traceback.format_stack()[:-1])
    set_fields(
        operator,
        caller,
        type=operator_type,
        name=name,
        input=[str(one) for one in references(inputs)],
        output=[str(one) for one in references(outputs)],
        control_input=[str(one) for one in references(control_input or [])],
    )
    if engine is not None:
        set_fields(operator, caller, engine=engine)
    if debug_info is not None:
        set_fields(operator, caller, debug_info=debug_info)
    device = scope.CurrentDeviceScope() if device_option is None else device_option
    if device is not None:
        operator.device_option.CopyFrom(as_message(device, "DeviceOption", caller))
    if "random_seed" in kwargs:
        set_fields(operator.device_option, caller, random_seed=kwargs.pop("random_seed"))
    if arg is not None:
        if not isinstance(arg, Iterable):
            raise EnforceTypeError(
                f"arg must be a list of Arguments, not {type(arg).__name__}.", caller
            )
        for one in arg:
            operator.arg.add().CopyFrom(as_message(one, "Argument", caller))
    for key, value in kwargs.items():
        if value is not None:
            operator.arg.append(MakeArgument(key, value))
    for observe in observers:
        observe(operator)
    return operator


def DeviceOption(
    device_type: int,
    device_id: int = 0,
    random_seed: int | None = None,
    node_name: str | None = None,
    numa_node_id: int | None = None,
    extra_info: Any = None,
) -> Any:
    """Return a DeviceOption, such as ``DeviceOption(caffe2_pb2.CUDA, 1)`` for the second GPU.

    Raises EnforceNotMet: a value that the message cannot hold (also a TypeError or ValueError), or
    a NUMA node for a device other than the CPU (also an AssertionError).

    >>> from bridge.caffe2 import core
    >>> core.DeviceOption(core.caffe2_pb2.CUDA, 1).device_id
    1
    """
    caller = "DeviceOption"
    option = caffe2_pb2().DeviceOption()
    if numa_node_id is not None and device_type != 0:
        raise EnforceAssertionError(
            "Only the CPU has NUMA nodes.", caller, condition="device_type == CPU"
        )
    set_fields(option, caller, device_type=device_type, device_id=device_id)
    for name, value in (
        ("random_seed", random_seed),
        ("node_name", node_name),
        ("numa_node_id", numa_node_id),
        ("extra_info", extra_info),
    ):
        if value is not None:
            set_fields(option, caller, **{name: value})
    return option


def OpAlmostEqual(op_a: Any, op_b: Any, ignore_fields: Any = None) -> bool:
    """Return whether two OperatorDefs are equal apart from some fields.

    ignore_fields: the name of a field or a list of names. Raises EnforceNotMet: an operator is not
    an OperatorDef (also a TypeError), or a name is not a str (also an AssertionError).

    >>> from bridge.caffe2 import core, utils
    >>> a, b = (core.CreateOperator("Relu", "x", "y", name=name) for name in "ab")
    >>> utils.OpAlmostEqual(a, b), utils.OpAlmostEqual(a, b, "name")
    (False, True)
    """
    fields = [ignore_fields] if isinstance(ignore_fields, str) else ignore_fields or []
    if not all(isinstance(field, str) for field in fields):
        raise EnforceAssertionError(
            f"Expect each field is text type, but got {fields}", "OpAlmostEqual"
        )
    copies = []
    for op in (op_a, op_b):
        message = copied(op, "OperatorDef", "OpAlmostEqual")
        for field in fields:
            message.ClearField(field)
        copies.append(message)
    return bool(copies[0] == copies[1])
