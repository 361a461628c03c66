# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's tensors, eager and not."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf

from tests.exchange.matrix.case import TENSORFLOW_COPIES, TENSORFLOW_LACKS, Case, samples
from tests.exchange.matrix.sources_numpy import EVERY_TYPE, FLOATS
from tests.helpers.dlpack_consumer import take_capsule


def address(source: Any) -> int:
    if isinstance(source, tf.Variable):
        source = source.value()
    taken = take_capsule(tf.experimental.dlpack.to_dlpack(source))
    found = taken.address
    taken.release()
    return found


def of_tensor(name: str, make: Any, values: Any, **fields: Any) -> Case:
    fields.setdefault("address", address)
    fields.setdefault("library", "tensorflow")
    return Case(f"tensorflow {name}", make, values=lambda: values, readonly=True, **fields)


def typed(name: str) -> Case:
    values = samples(name)
    # Its DLPack does not know the narrow ones; NumPy's arrays show where they lie.
    by_array = {"address": lambda source: int(np.asarray(source).ctypes.data)}
    where = by_array if name in TENSORFLOW_COPIES else {}
    return of_tensor(name, lambda: tf.constant(values), values, **where)


def graph_tensor() -> Any:
    with tf.Graph().as_default():
        return tf.constant([1.0])


def symbolic() -> Any:
    found = []

    @tf.function(autograph=False)  # type: ignore[untyped-decorator]
    def body(x: Any) -> Any:
        found.append(x + 1)
        return x

    body(tf.zeros(2))
    return found[0]


def quantized(dtype: Any, carrier: Any) -> Any:
    return tf.bitcast(tf.zeros(4, carrier), dtype)


def refused(name: str, make: Any, match: str, library: str = "tensorflow") -> Case:
    return Case(f"tensorflow {name}", make, library=library, match=match)


IN_TENSORFLOW = [name for name in EVERY_TYPE if name not in TENSORFLOW_LACKS]

CASES = [
    *(typed(name) for name in IN_TENSORFLOW),
    of_tensor("0-d", lambda: tf.constant(3.0), np.float32(3)),
    of_tensor("empty", lambda: tf.zeros((0,)), np.zeros(0, np.float32)),
    of_tensor("empty of three dimensions", lambda: tf.zeros((2, 0, 3)), np.zeros((2, 0, 3), "f4")),
    of_tensor("transposed", lambda: tf.transpose(tf.constant(FLOATS)), FLOATS.T.copy()),
    of_tensor("slice", lambda: tf.range(10.0)[2:5], np.float32([2, 3, 4])),
    of_tensor("20 dimensions", lambda: tf.ones((1,) * 20), np.ones((1,) * 20, "f4")),
    # Its value is another object, of the same memory.
    of_tensor("variable", lambda: tf.Variable(FLOATS), FLOATS, library=""),
    of_tensor("0-d variable", lambda: tf.Variable(3), np.int32(3), library=""),
    of_tensor(
        "variable of bool", lambda: tf.Variable([True, False]), np.array([True, False]), library=""
    ),
    refused("graph", graph_tensor, "tf.py_function"),
    refused("symbolic", symbolic, "tf.py_function"),
    refused("ragged", lambda: tf.ragged.constant([[1], [2, 3]]), "to_tensor", ""),
    refused("sparse", lambda: tf.sparse.from_dense([[1, 0]]), "to_dense", ""),
    refused("slices", lambda: tf.IndexedSlices(tf.ones(2), tf.constant([0, 1])), "one block", ""),
    refused("resource", lambda: tf.Variable(1.0).handle, "handle"),
    refused("variant", lambda: tf.data.Dataset.range(3)._variant_tensor, "handle"),
    refused("qint8", lambda: quantized(tf.qint8, tf.int8), "dequantize"),
    refused("quint8", lambda: quantized(tf.quint8, tf.uint8), "dequantize"),
    refused("qint16", lambda: quantized(tf.qint16, tf.int16), "dequantize"),
    refused("quint16", lambda: quantized(tf.quint16, tf.uint16), "dequantize"),
    refused("qint32", lambda: quantized(tf.qint32, tf.int32), "dequantize"),
    Case("tensorflow shape", lambda: tf.TensorShape([2]), error=TypeError),
    Case("tensorflow type", lambda: tf.float32, error=TypeError),
    Case("tensorflow spec", lambda: tf.TensorSpec([2]), error=TypeError),
    Case("tensorflow list of tensors", lambda: tf.TensorArray(tf.float32, 2), error=TypeError),
    Case("tensorflow module", lambda: tf, error=TypeError),
]
