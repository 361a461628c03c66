# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages and enums, by the names that a generated ``caffe2_pb2`` has.

>>> from bridge.caffe2.proto import caffe2_pb2
>>> op = caffe2_pb2.OperatorDef(type="Relu", input=["x"], output=["y"])
>>> op.device_option.device_type = caffe2_pb2.CUDA
>>> caffe2_pb2.OperatorDef.FromString(op.SerializeToString()) == op
True
>>> caffe2_pb2.TensorProto.DataType.Name(caffe2_pb2.TensorProto.FLOAT16)
'FLOAT16'

Messages are compiled from ``caffe2.proto`` beside this file into a descriptor pool of their own.
protobuf allows a name only once in each pool; a process can thus also load Caffe2's own messages,
or other copies of its ``.proto``. The classes of two pools are different classes; pass messages
between them as bytes (``SerializeToString``, ``FromString``).

No generated code is used, only protobuf's public interface from 3.20 to 7, with any of its
implementations. Messages are copied and pickled like others.
"""

import copyreg as _copyreg

from google.protobuf import descriptor_pool as _descriptor_pool
from google.protobuf import message_factory as _message_factory

from bridge.caffe2.proto.caffe2_descriptor import SERIALIZED as _SERIALIZED

# The pool must live as long as its descriptors.
_pool = _descriptor_pool.DescriptorPool()
# Returns the file in some implementations, None in others.
_pool.AddSerializedFile(_SERIALIZED)
DESCRIPTOR = _pool.FindFileByName("caffe2/proto/caffe2.proto")

# protobuf before 4.22 has the factory object only, protobuf from 5 on the function only.
if hasattr(_message_factory, "GetMessageClass"):
    _class_of = _message_factory.GetMessageClass
else:
    _class_of = _message_factory.MessageFactory(_pool).GetPrototype


def _reduce(message):
    """Reduce a nested message as protobuf reduces others."""
    return type(message), (), message.__getstate__()


def _place(message, prefix):
    """Return the class of a message, and of those within, the module and name pickle looks for."""
    made = _class_of(message)
    made.__module__ = __name__
    made.__qualname__ = f"{prefix}{message.name}"
    # Old generated modules have the descriptors too, as _TENSORPROTO and _TENSORPROTO_SEGMENT.
    flat = "_" + made.__qualname__.replace(".", "_").upper()
    globals()[flat] = message
    for enum in message.enum_types:
        globals()[f"{flat}_{enum.name.upper()}"] = enum
    # When protobuf unpickles nested messages, it looks them up in its default pool.
    if prefix:
        _copyreg.pickle(made, _reduce)
    for nested in message.nested_types:
        setattr(made, nested.name, _place(nested, f"{made.__qualname__}."))
    return made


for _message in DESCRIPTOR.message_types_by_name.values():
    globals()[_message.name] = _place(_message, "")

for _enum in DESCRIPTOR.enum_types_by_name.values():
    # The class of the wrappers is protobuf's own business; every enum within a message has one.
    globals()[_enum.name] = type(globals()["TensorProto"].DataType)(_enum)
    globals()[f"_{_enum.name.upper()}"] = _enum
    for _value in _enum.values:
        globals()[_value.name] = _value.number

# Caffe2 adds these to its generated module: the device types without their prefix.
for _value in DESCRIPTOR.enum_types_by_name["DeviceTypeProto"].values:
    globals()[_value.name.removeprefix("PROTO_")] = _value.number
del _message, _enum, _value
