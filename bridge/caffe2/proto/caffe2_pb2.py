# SPDX-License-Identifier: Apache-2.0
"""Caffe2's messages and enums, by the names that a generated ``caffe2_pb2`` has.

>>> from bridge.caffe2.proto import caffe2_pb2
>>> op = caffe2_pb2.OperatorDef(type="Relu", input=["x"], output=["y"])
>>> op.device_option.device_type = caffe2_pb2.CUDA
>>> caffe2_pb2.OperatorDef.FromString(op.SerializeToString()) == op
True
>>> caffe2_pb2.TensorProto.DataType.Name(caffe2_pb2.TensorProto.FLOAT16)
'FLOAT16'

Messages are compiled from Caffe2's ``caffe2.proto`` into a descriptor pool of their own.
protobuf allows a name only once in each pool; a process can thus also load Caffe2's own messages,
or other copies of its ``.proto``. The classes of two pools are different classes; pass messages
between them as bytes (``SerializeToString``, ``FromString``).

No generated code is used, only protobuf's public interface from 3.20 to 7, with any of its
implementations. Messages are copied and pickled like others.
"""

from bridge.caffe2.proto.caffe2_descriptor import SERIALIZED as _SERIALIZED
from bridge.caffe2.proto.message_classes import define as _define

_define(globals(), _SERIALIZED)

# Caffe2 adds these to its generated module: the device types without their prefix.
for _value in globals()["DESCRIPTOR"].enum_types_by_name["DeviceTypeProto"].values:
    globals()[_value.name.removeprefix("PROTO_")] = _value.number
del _value
