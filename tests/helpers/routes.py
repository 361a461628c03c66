# SPDX-License-Identifier: Apache-2.0
"""Every way in, out and across, as statements that leave nothing behind when they are done.

A group belongs to a framework, which is imported when its names are asked for. The test of leaks
goes round each route some thousand times, the benchmark of memory a million times.
"""

from __future__ import annotations

import array
import copy
import ctypes
import importlib.util
import mmap
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace

Names = dict[str, Any]

STATEMENTS: dict[str, tuple[str, ...]] = {
    "torch": (
        "bridge.from_dlpack(t)",
        "bridge.from_dlpack(t[1:])",
        "bridge.from_dlpack(t, copy=True)",
        "bridge.from_dlpack(t.__dlpack__())",
        "bridge.to_torch(n)",
        "a.to_torch()",
        "at.zeros((2, 3)).to_torch()",
        "torch.from_dlpack(a)",
        "a.add(1)",
        "torch.add(a, t)",
        "refused(bridge.from_dlpack, grad)",
    ),
    "numpy": (
        "bridge.from_dlpack(n)",
        "bridge.from_dlpack(n[:, ::2])",
        "bridge.from_dlpack(n.astype('>f4'))",
        "a.numpy()",
        "np.from_dlpack(a)",
        "np.asarray(c)",
        "bridge.to_numpy(t, copy=True)",
        "bridge.asarray([[1, 2], [3, 4]])",
        "bridge.asarray(['a', b'b'])",
        "refused(bridge.from_dlpack, objects)",
        "refused(bridge.to_torch, n[::-1], copy=False)",
        "np.sum(a)",
        "np.concatenate([c, c])",
    ),
    "wrappers": (
        "caffe2.Tensor(a)",
        "at.Tensor(c)",
        "a.transpose(0, 1)",
        "a[0:1]",
        "a.clone()",
        "copy.deepcopy(c)",
        "c.data()",
        "c.mutable_data('float32')",
        "c.Alias()",
        "caffe2.Tensor((2, 3), 'cpu').mutable_data('int64')",
        "a.__dlpack__()",
        "a.__dlpack__(max_version=(1, 3))",
        "bridge.from_dlpack(a.__dlpack__(max_version=(1, 3)))",
        "memoryview(a)",
        "a.__array_interface__",
        "a.__arrow_c_schema__()",
        "a.__arrow_c_array__()",
        "a.view(-1).__arrow_c_device_array__()",
        "(a > 0).__arrow_c_array__()",
    ),
    "buffers": (
        "bridge.from_dlpack(b'abc')",
        "bridge.from_dlpack(byte_array)",
        "bridge.from_dlpack(memoryview(byte_array)[1:])",
        "bridge.from_dlpack(doubles)",
        "bridge.from_dlpack(mapped)",
        "bridge.from_dlpack(in_c)",
        "bridge.from_dlpack(interface)",
        "at.from_blob(byte_array, (2,), dtype='float32')",
        "at.from_blob(byte_array, (2,), None, None, released)",
    ),
    "workspace": (
        "workspace.FeedBlob('x', t)",
        "workspace.FeedBlob('x', n)",
        "workspace.FeedBlob('x', a)",
        "workspace.FeedBlob('x', b'text')",
        "workspace.FeedBlob('x', strings)",
        "workspace.FetchTorch('fetched')",
        "workspace.FetchBlob('fetched')",
        "workspace.FetchBlob('strings')",
        "workspace.blobs['fetched']",
        "workspace.Workspace().feed_blob('x', t)",
        "refused(workspace.FeedBlob, 'x', objects)",
        "refused(workspace.FetchBlob, 'nowhere')",
    ),
    "pickle": (
        "pickle.loads(pickle.dumps(a))",
        "pickle.loads(pickle.dumps(c, 4))",
        "out_of_band(a)",
    ),
    "messages": (
        "bridge.tf.make_tensor_proto(a)",
        "bridge.tf.make_tensor_proto(['a', 'b'])",
        "bridge.tf.from_tensor_proto(message)",
        "bridge.tf.from_tensor_proto(message, copy=True)",
        "bridge.tf.from_tensor_proto(values)",
        "bridge.tf.from_tensor_proto(texts)",
        "bridge.tf.TensorShape(bridge.tf.TensorShape([2, None]).as_proto())",
        "refused(bridge.tf.from_tensor_proto, message[:-1])",
    ),
    "tvm_ffi": (
        "bridge.from_dlpack(f)",
        "tvm_ffi.from_dlpack(a)",
        "bridge.to_torch(f)",
    ),
    "jax": (
        "bridge.from_dlpack(j)",
        "bridge.to_jax(n)",
        "bridge.to_jax(a)",
        "bridge.to_jax(t)",
        "bridge.to_torch(j)",
        "bridge.to_numpy(j)",
    ),
    "tensorflow": (
        "bridge.from_dlpack(e)",
        "bridge.to_tensorflow(n)",
        "bridge.to_tensorflow(a)",
        "bridge.to_tensorflow(t)",
        "bridge.to_torch(e)",
        "bridge.to_numpy(e)",
    ),
    "pyarrow": (
        "bridge.from_dlpack(arrow)",
        "bridge.from_dlpack(arrow_tensor)",
        "bridge.from_dlpack(arrow_buffer)",
        "bridge.to_torch(arrow)",
        "bridge.from_dlpack(arrow_lists)",
        "bridge.from_dlpack(arrow_chunk)",
        "bridge.from_dlpack(arrow_table)",
        "bridge.from_dlpack(arrow_flags)",
        "arrow_array(a)",
        "arrow_array(bridge.from_dlpack(arrow_lists))",
        "refused(bridge.from_dlpack, nulls)",
    ),
}
# Groups whose names need a package that may not be there.
OPTIONAL = ("tvm_ffi", "jax", "tensorflow", "pyarrow")


def is_here(group: str) -> bool:
    """Whether the framework of a group is installed."""
    return group not in OPTIONAL or importlib.util.find_spec(group) is not None


class Interface:
    """An array that only `__array_interface__` gives away."""

    def __init__(self, owner: np.ndarray[Any, Any]) -> None:
        self.owner = owner
        self.__array_interface__ = owner.__array_interface__


def refused(call: Callable[..., Any], *arguments: Any, **options: Any) -> None:
    """Expect an error, and drop it."""
    try:
        call(*arguments, **options)
    except (BufferError, RuntimeError):
        return
    raise AssertionError(f"{call.__name__} took {arguments!r}")


def out_of_band(x: Any) -> Any:
    """A pickle whose buffer goes beside it."""
    buffers: list[pickle.PickleBuffer] = []
    data = pickle.dumps(x, 5, buffer_callback=buffers.append)
    return pickle.loads(data, buffers=buffers)


def names_of(group: str, sizes: tuple[int, int] = (2, 3)) -> Names:
    """The globals of a group's statements, tensors of `sizes`; imports its framework."""
    array_ = np.zeros(sizes, np.float32)
    names: Names = {
        "a": at.zeros(sizes),
        "at": at,
        "bridge": bridge,
        "c": caffe2.Tensor(at.zeros(sizes)),
        "caffe2": caffe2,
        "copy": copy,
        "n": array_,
        "np": np,
        "objects": np.empty(3, object),
        "refused": refused,
        "t": torch.zeros(sizes),
        "torch": torch,
        "workspace": workspace,
    }
    if group == "torch":
        names["grad"] = torch.zeros(sizes, requires_grad=True)
    elif group == "buffers":
        names.update(
            byte_array=bytearray(array_.nbytes),
            doubles=array.array("d", bytes(8 * array_.size)),
            in_c=(ctypes.c_int32 * array_.size)(),
            interface=Interface(array_),
            mapped=mmap.mmap(-1, array_.nbytes),
            released=lambda address: None,
        )
    elif group == "workspace":
        names["strings"] = np.array([b"a", b"bc"])
        workspace.FeedBlob("fetched", names["t"])
        workspace.FeedBlob("strings", names["strings"])
    elif group == "pickle":
        names.update(pickle=pickle, out_of_band=out_of_band)
    elif group == "messages":
        names.update(
            message=bridge.tf.make_tensor_proto(array_),
            values=bridge.tf.make_tensor_proto(np.ones(array_.size, np.uint16)),
            texts=bridge.tf.make_tensor_proto(["a", "bc"]),
        )
    elif group in OPTIONAL:
        names.update(_FRAMEWORKS[group](array_))
    return names


def _tvm_ffi(array_: Any) -> Names:
    import tvm_ffi

    return {"tvm_ffi": tvm_ffi, "f": tvm_ffi.from_dlpack(at.zeros(array_.shape))}


def _jax(array_: Any) -> Names:
    import jax.numpy as jnp

    return {"j": jnp.zeros(array_.shape, jnp.float32)}


def _tensorflow(array_: Any) -> Names:
    import tensorflow as tf

    return {"e": tf.zeros(array_.shape, tf.float32)}


def _pyarrow(array_: Any) -> Names:
    import pyarrow as pa

    return {
        "arrow": pa.array(array_.ravel()),
        "arrow_buffer": pa.py_buffer(array_.tobytes()),
        "arrow_tensor": pa.Tensor.from_numpy(array_),
        "arrow_lists": pa.array([[1, 2], [3, 4]], pa.list_(pa.int32(), 2)),
        "arrow_chunk": pa.chunked_array([array_.ravel()]),
        "arrow_table": pa.table({"a": array_.ravel(), "b": array_.ravel()}),
        "arrow_flags": pa.array(array_.ravel() > 0),
        "arrow_array": pa.array,
        "nulls": pa.array([1, None]),
    }


_FRAMEWORKS: dict[str, Callable[[Any], Names]] = {
    "tvm_ffi": _tvm_ffi,
    "jax": _jax,
    "tensorflow": _tensorflow,
    "pyarrow": _pyarrow,
}
