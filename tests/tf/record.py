# SPDX-License-Identifier: Apache-2.0
"""Record what TensorFlow writes, so that the tests compare with it where it is not installed.

    python -m tests.tf.record

writes golden.json beside this file. A row has the element type, the sizes, who wrote it
("python" is tf.make_tensor_proto, "repeated" the same told to leave repeats of a value to the
reader, "c++" tf.io.serialize_tensor, "content" a message of "python" with its values as
tensor_content), the message and the elements, in hexadecimal; strings one by one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

from bridge.tf.element_types import ROWS

GOLDEN = Path(__file__).with_name("golden.json")
SHAPES = ((), (1,), (2, 3), (0, 2), (20,))
# What a message may leave to the reader: the last value is repeated.
REPEATED = {"float32": 1.5, "int32": -3, "bool": True, "string": b"ab", "complex128": 1 - 2j}


def elements(name: str, sizes: tuple[int, ...]) -> np.ndarray[Any, Any]:
    """Elements of a type, small and of both signs where it has them."""
    numel = int(np.prod(sizes))
    if name == "string":
        made = np.empty(numel, object)
        made[:] = [b"x\0\xff" * (i % 4) for i in range(numel)]
        return made.reshape(sizes)
    unsigned = name.startswith(("uint", "bool"))
    values = np.arange(numel) % 4 - (0 if unsigned else 1)
    if name == "int2":
        values = np.arange(numel) % 4 - 2
    if name in ("uint16", "uint32", "uint64", "int16", "int32", "int64"):
        values = values * 300
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    made = values.reshape(sizes).astype(dtype)
    return made * (1 + 2j) if name.startswith("complex") else made


def rows() -> Iterator[dict[str, Any]]:
    """Ask TensorFlow for every row."""
    import tensorflow as tf

    for row in ROWS:
        for sizes in SHAPES:
            array = elements(row.name, sizes)
            yield from made(tf, row.name, array)
    for name, value in REPEATED.items():
        proto = tf.make_tensor_proto(value, shape=[2, 3])
        dtype = np.dtype(object if name == "string" else name)
        yield described(name, np.full((2, 3), value, dtype), "repeated", proto.SerializeToString())


def made(tf: Any, name: str, array: np.ndarray[Any, Any]) -> Iterator[dict[str, Any]]:
    """What TensorFlow writes of one array, each way that it can."""
    try:
        proto = tf.make_tensor_proto(array)
    except TypeError:  # single values of some types it does not write in Python
        proto = None
    if proto is not None:
        yield described(name, array, "python", proto.SerializeToString())
    dtype = tf.dtypes.as_dtype(name)
    try:
        message = tf.io.serialize_tensor(tf.constant(array, dtype)).numpy()
    except tf.errors.NotFoundError:  # no kernel for the types of eight bits and fewer
        message = None
    if message is not None:
        yield described(name, array, "c++", message)
    if proto is not None and not proto.tensor_content and array.size and name != "string":
        content = type(proto)(dtype=proto.dtype, tensor_shape=proto.tensor_shape)
        content.tensor_content = array.tobytes()
        yield described(name, array, "content", content.SerializeToString())


def described(name: str, array: np.ndarray[Any, Any], by: str, message: bytes) -> dict[str, Any]:
    """One row of the file."""
    data = [one.hex() for one in array.ravel()] if name == "string" else array.tobytes().hex()
    return {"dtype": name, "sizes": array.shape, "by": by, "message": message.hex(), "data": data}


def main() -> None:
    """Write the file, a row a line."""
    lines = [json.dumps(row) for row in rows()]
    GOLDEN.write_text("[\n" + ",\n".join(lines) + "\n]\n")


if __name__ == "__main__":
    main()
