# SPDX-License-Identifier: Apache-2.0
"""Definition: an OperatorDef parsed into Python values, once."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType
from bridge.caffe2.base.device_option import device_of_option, on_mkldnn
from bridge.caffe2.base.messages import as_message, caffe2_pb2, check_text, wire_bytes
from bridge.caffe2.definitions.argument_values import values_of
from bridge.caffe2.execution.operator_core import DefinitionCore

_CPU = Device(DeviceType.CPU)

# Definitions by the bytes of their messages, since parsing a message takes longer than running a
# small operator. Larger messages, which hold weights, are not worth the memory.
_CACHED_BYTES = 4096
_CACHED_DEFINITIONS = 1024
definitions: dict[bytes, Definition] = {}


class Definition(DefinitionCore):
    """The fields of an OperatorDef, copied.

    type, name, engine, debug_info: strings, empty by default. inputs, outputs: names of blobs.
    control_inputs: names of blobs that must be written before, although they are not read.
    arguments: the values of each argument by its name. device: where the operator runs.
    kind: the name of the device type. random_seed: from the device option, or None. data: the bytes
    of the message.

    net_device: the DeviceOption of a net, for an operator without one of its own.

    Raises EnforceNotMet, also a ValueError: the message lacks a required field, a name is not
    UTF-8, two arguments of one name differ, or operators do not run on the device.
    """

    __slots__ = (
        "arguments",
        "control_inputs",
        "data",
        "debug_info",
        "engine",
        "kind",
        "name",
        "random_seed",
        "type",
    )

    type: str
    name: str
    engine: str
    debug_info: str
    control_inputs: tuple[str, ...]
    arguments: dict[str, dict[str, Any]]
    kind: str
    random_seed: int | None
    data: bytes

    def __init__(
        self,
        message: Any,
        data: bytes | None = None,
        net_device: Any = None,
        caller: str = "Operator",
    ) -> None:
        self.type = message.type
        self.name = message.name
        self.engine = message.engine
        self.debug_info = message.debug_info
        self.inputs = tuple(message.input)
        self.outputs = tuple(message.output)
        self.control_inputs = tuple(message.control_input)
        names = (*self.inputs, *self.outputs, *self.control_inputs)
        check_text(message, (self.type, self.name, self.engine, *names), caller)
        self.arguments = values_of(message)
        option = net_device
        if message.HasField("device_option"):
            option = message.device_option
        self._place(_CPU if option is None else device_of_option(option))
        if on_mkldnn(option) and self.type.startswith("Int8"):
            # Its images of bytes are in the order NHWC, whatever `order` says.
            self.arguments["order"] = {"s": "NHWC"}
        self.kind = "cpu" if option is None else self.device.type.name.lower()
        self.random_seed = (
            option.random_seed if option is not None and option.HasField("random_seed") else None
        )
        self.data = wire_bytes(message, "OperatorDef", caller) if data is None else data

    def message(self) -> Any:
        """Return a new OperatorDef."""
        return caffe2_pb2().OperatorDef.FromString(self.data)

    def __str__(self) -> str:
        name = f" named {self.name!r}" if self.name else ""
        return (
            f"operator {self.type!r}{name} with inputs {list(self.inputs)} and outputs "
            f"{list(self.outputs)}"
        )


def definition_of(obj: Any, caller: str) -> Definition:
    """Return the definition of an OperatorDef: a message of any class, bytes, or a core object.

    It is cached by the bytes of the message.
    Raises EnforceNotMet, also a TypeError or ValueError: it is not an OperatorDef.
    """
    data = wire_bytes(obj, "OperatorDef", caller)
    found = definitions.get(data)
    if found is None:
        found = Definition(as_message(data, "OperatorDef", caller), data)
        if len(data) <= _CACHED_BYTES:
            if len(definitions) >= _CACHED_DEFINITIONS:
                definitions.clear()
            definitions[data] = found
    return found
