# SPDX-License-Identifier: Apache-2.0
"""Old and new idioms of Caffe2 code, after its tensors were unified with those of PyTorch.

Each step shows an idiom and its replacement: constructing a tensor, the outputs of an operator,
reading sizes, passing a tensor on, and keeping one between calls. Both forms work; old names raise
a DeprecationWarning that states the new name.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace


def constructing() -> None:
    """Before: type and memory are set at the first write. After: at construction."""
    before = caffe2.Tensor([2, 3], "cpu")
    print("Tensor(dims, D):      ", before)
    assert not before.dtype_initialized()
    assert not before.storage_initialized()
    before.mutable_data("float32")[:] = 0

    after = caffe2.empty([2, 3], c10.dtype("float32").device("cpu"))
    print("empty(dims, options): ", after)
    assert after.dtype_initialized()
    assert after.storage_initialized()

    # Tensor() is undefined, like a null pointer. Tensor("cpu") is an empty tensor.
    assert not caffe2.Tensor()
    assert caffe2.Tensor("cpu").sizes() == (0,)
    print("with values:          ", caffe2.Tensor([3], [1, 2, 3], "int64").data())


@caffe2.register_operator("NoteDoubleBefore")
class DoubleBefore(caffe2.Operator):
    """Gets its output, resizes it, and allocates its memory."""

    def RunOnDevice(self) -> bool:
        """Double each element. (d0, ...) -> (d0, ...)."""
        source, output = self.Input(0), self.Output(0)
        output.ResizeLike(source)
        np.multiply(source.data("float32"), 2, out=output.mutable_data("float32"))
        return True


@caffe2.register_operator("NoteDoubleAfter")
class DoubleAfter(caffe2.Operator):
    """Specifies its output, which is returned allocated, in the same buffer if that fits."""

    def RunOnDevice(self) -> bool:
        """Double each element. (d0, ...) -> (d0, ...)."""
        source = self.Input(0)
        output = self.Output(0, source.sizes(), c10.dtype("float32"))
        np.multiply(source.data("float32"), 2, out=output.data())
        return True


def outputs() -> None:
    """Before: Output(i), Resize, mutable_data. After: Output(i, dims, options)."""
    workspace.FeedBlob("note_x", np.arange(4, dtype=np.float32))
    for operator in ("NoteDoubleBefore", "NoteDoubleAfter"):
        workspace.RunOperatorOnce(core.CreateOperator(operator, ["note_x"], ["note_y"]))
        print(f"{operator + ':':<22}", workspace.FetchBlob("note_y"))
        assert workspace.FetchBlob("note_y").tolist() == [0, 2, 4, 6]


def reading_sizes() -> None:
    """Before: ndim, dims, dim(i), size. After: dim, sizes, size(i), numel, as in ATen."""
    tensor = caffe2.empty([2, 3, 4], "float32")
    with old_names():
        assert tensor.ndim() == tensor.dim() == 3
        assert tensor.dims() == tensor.sizes() == (2, 3, 4)
        assert tensor.dim(1) == tensor.size(1) == 3
        assert tensor.size() == tensor.numel() == 24
    sizes = tensor.sizes()
    tensor.Resize(5)
    # In C++ this would refer to the new sizes, or to freed memory.
    print("sizes() after Resize: ", sizes, "->", tensor.sizes())
    assert sizes == (2, 3, 4)


def pointer_to_a_tensor() -> None:
    """Before: a pointer to the tensor. After: a tensor that shares what it should."""
    tensor = caffe2.Tensor([4], [1, 2, 3, 4], "float32")

    same = tensor.UnsafeSharedInstance()  # replaces a Tensor*: shares metadata too
    same.Resize(2, 2)
    print("UnsafeSharedInstance: ", tensor.sizes(), "is_same:", same.is_same(tensor))

    alias = tensor.Alias()  # the same memory with its own sizes
    alias.Resize(4)
    alias.data()[0] = 10
    print("Alias:                ", tensor.sizes(), tensor.data())

    clone = tensor.Clone()  # its own memory
    clone.data()[0] = 99
    assert tensor.data()[0] == 10

    try:
        caffe2.Tensor(tensor)  # ambiguous: it does not state what is shared
    except TypeError as error:
        print("Tensor(tensor):       ", str(error).partition("] ")[2])

    aten = at.Tensor(tensor)  # the same TensorImpl with ATen's API
    aten.mul_(2)
    assert tensor.data().tolist() == [20, 4, 6, 8]


def caching() -> None:
    """Before: a member resized and typed at each use. After: ReinitializeTensor."""
    allocations = c10.GetAllocator("cpu").stats
    buffer = caffe2.Tensor()  # the device is not needed before the first use
    caffe2.ReinitializeTensor(buffer, [100], c10.dtype("float32").device("cpu"))
    address, before = buffer.raw_data(), allocations.allocations
    for n in (100, 50, 75, 100):
        caffe2.ReinitializeTensor(buffer, [n], c10.dtype("float32").device("cpu"))
        assert buffer.raw_data() == address
    print("four uses allocate:   ", allocations.allocations - before, "times")

    # Another type replaces the tensor; those that share the old one keep it.
    shared = buffer.UnsafeSharedInstance()
    caffe2.ReinitializeTensor(buffer, [100], c10.dtype("int64").device("cpu"))
    print("another type:         ", buffer.dtype(), "and", shared.dtype())
    assert not buffer.is_same(shared)


@contextmanager
def old_names() -> Iterator[None]:
    """Print the warnings of old names inside the context."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for warning in caught:
        print("warned:               ", warning.message)
    assert [warning.category for warning in caught] == [DeprecationWarning] * 4


def main() -> None:
    """Run all steps."""
    for step in (constructing, outputs, reading_sizes, pointer_to_a_tensor, caching):
        print(f"\n{step.__name__.replace('_', ' ')}\n{step.__doc__}")
        step()


if __name__ == "__main__":
    main()
