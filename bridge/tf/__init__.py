# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's shapes and tensor messages, without TensorFlow.

>>> import numpy as np
>>> from bridge import tf
>>> message = tf.make_tensor_proto(np.arange(6.0).reshape(2, 3))
>>> tensor = tf.from_tensor_proto(message)
>>> tensor.readonly, tensor.tolist()
(True, [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])

For eager tensors use ``bridge.from_dlpack``, ``bridge.asarray`` and ``bridge.to_tensorflow``.
"""

from __future__ import annotations

from bridge.lazy import listed as _listed
from bridge.tf.read_tensor_proto import from_tensor_proto
from bridge.tf.shape import TensorShape
from bridge.tf.shape_proto import TensorProtoError, TensorShapeProto
from bridge.tf.write_tensor_proto import make_tensor_proto

__all__ = [
    "TensorProtoError",
    "TensorShape",
    "TensorShapeProto",
    "from_tensor_proto",
    "make_tensor_proto",
]

__dir__ = _listed(__name__)
