# SPDX-License-Identifier: Apache-2.0
"""`__arrow_c_array__` and the methods beside it, on both wrappers."""

from __future__ import annotations

import ctypes
import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from tests.helpers.arrow_producer import (
    ArrowArray,
    ArrowDeviceArray,
    ArrowSchema,
    pointer,
    released,
    taken_array,
)

NUMBERS = (
    *("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float16", "float32", "float64"),
)


class Memory:
    """An owner of memory that can be watched."""

    def __init__(self, values: np.ndarray[Any, Any]) -> None:
        self.values = values
        self.__array_interface__ = values.__array_interface__


def owned(n: int = 6) -> tuple[at.Tensor, weakref.ref[Memory]]:
    memory = Memory(np.arange(float(n)))
    return bridge.from_dlpack(memory), weakref.ref(memory)


def array_in(capsule: Any) -> ArrowArray:
    return ArrowArray.from_address(pointer(capsule, b"arrow_array"))


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_are_shared_with_pyarrow(name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    x = at.arange(5).to(dtype=name)
    array = pa.array(x)
    assert array.type == pa.from_numpy_dtype(name)
    assert array.buffers()[1].address == x.data_ptr()
    assert array.to_numpy(zero_copy_only=False).tolist() == x.tolist()
    assert (array.null_count, len(array)) == (0, 5)


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 2), (1, 2, 3, 4), (0, 3), (2, 0)])
def test_dimensions_are_a_tensor_of_pyarrow(shape: tuple[int, ...]) -> None:
    pa = pytest.importorskip("pyarrow")
    x = at.arange(int(np.prod(shape))).view(*shape)
    array = pa.array(x)
    assert array.type == pa.fixed_shape_tensor(pa.int64(), shape[1:])
    assert len(array) == shape[0]
    array.validate(full=True)
    if x.numel():
        assert array.storage.flatten().buffers()[1].address == x.data_ptr()
        assert array.to_numpy_ndarray().tolist() == x.tolist()
        assert bridge.from_dlpack(array).tolist() == x.tolist()


def test_a_consumer_gets_the_type_that_it_asks_for_if_the_values_fit() -> None:
    pa = pytest.importorskip("pyarrow")
    x = at.arange(4)
    with bridge.audit() as log:
        assert pa.array(x, type=pa.float32()).to_pylist() == [0, 1, 2, 3]
    assert log.copied_bytes == 32
    assert pa.array(x, pa.int64()).buffers()[1].address == x.data_ptr()
    assert pa.array(at.tensor([0.1]), type=pa.float64()).type == pa.float64()
    for number, kind in (
        (300, pa.int8()),
        (-1, pa.uint64()),
        (0.5, pa.int64()),
        (2**53 + 1, pa.float64()),
        (float("nan"), pa.int32()),
    ):
        values = at.tensor([number])
        with pytest.raises(BufferError, match="do not fit"):
            pa.array(values, type=kind)
    with pytest.raises(BufferError, match="strings"):
        pa.array(x, type=pa.string())
    with pytest.raises(BufferError, match="capsule"):
        x.__arrow_c_array__(5)  # type: ignore[arg-type]


def test_a_tensor_of_caffe2_keeps_its_exported_values_after_a_resize() -> None:
    pa = pytest.importorskip("pyarrow")
    x = caffe2.Tensor([2, 2], [1, 2, 3, 4])
    array = pa.array(x)
    assert array.to_numpy_ndarray().tolist() == [[1, 2], [3, 4]]
    x.Resize(100)
    x.mutable_data("float32")
    assert array.to_numpy_ndarray().tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("shape", [(1,), (8,), (13,), (2, 5), (0,)])
def test_booleans_are_packed_into_a_copy(shape: tuple[int, ...]) -> None:
    pa = pytest.importorskip("pyarrow")
    x = bridge.asarray(np.arange(int(np.prod(shape))).reshape(shape) % 3 == 1)
    with bridge.audit() as log:
        array = pa.array(x)
    assert log.copied_bytes == x.numel()
    assert (array if x.ndim == 1 else array.storage).to_pylist() == x.tolist()
    if x.numel():
        with bridge.no_copy(), pytest.raises(BufferError, match="bits"):
            x.__arrow_c_array__()


def test_an_audit_records_exports_as_shared() -> None:
    x = at.arange(3)
    with bridge.audit() as log:
        x.__arrow_c_array__()
        x.__arrow_c_device_array__()
    assert [record.copied for record in log.records] == [False, False]


@pytest.mark.parametrize(
    ("make", "match"),
    [
        (lambda: at.zeros(2, 3).t(), r"contiguous\(\)"),
        (lambda: at.arange(4).slice(0, 0, 4, 2), "row-major"),
        (lambda: at.tensor(5.0), "reshape"),
        (lambda: at.zeros(2, dtype="bfloat16"), "bfloat16"),
        (lambda: at.zeros(2, dtype="complex64"), "complex64"),
        (caffe2.Tensor, "undefined"),
        (lambda: caffe2.Tensor([2], "cpu"), "no element type"),
        (lambda: bridge.asarray(["a"]), "non-POD"),
        (lambda: at.zeros(1, 2**16, 2**15, 0), None),
        (lambda: at.zeros(0, 2**16, 2**15), "at most"),
    ],
)
def test_types_and_layouts_that_arrow_lacks_are_refused(
    make: Callable[[], Any], match: str | None
) -> None:
    x = make()
    for call in (x.__arrow_c_schema__, x.__arrow_c_array__, x.__arrow_c_device_array__):
        if match is None:
            call()
            continue
        with pytest.raises(BufferError, match=match):
            call()


# Lifetimes.


def test_an_array_keeps_the_memory_and_not_the_tensor() -> None:
    x, memory = owned()
    schema, array = x.__arrow_c_array__()
    impl = weakref.ref(x.unsafeGetTensorImpl())
    del x
    gc.collect()
    assert impl() is None
    assert memory() is not None
    del schema, array
    gc.collect()
    assert memory() is None


@pytest.mark.parametrize("dims", [1, 2])
def test_a_moved_array_keeps_the_memory(dims: int) -> None:
    x, memory = owned()
    taken = taken_array((x if dims == 1 else x.view(2, 3)).__arrow_c_array__()[1])
    del x
    gc.collect()
    assert memory() is not None
    released(taken)
    gc.collect()
    assert memory() is None


def test_a_child_outlives_its_parent() -> None:
    x, memory = owned()
    taken = taken_array(x.view(2, 3).__arrow_c_array__()[1])
    child = ArrowArray.from_buffer_copy(taken.children[0][0])
    taken.children[0][0].release = type(taken.release)()
    del x
    released(taken)
    gc.collect()
    assert memory() is not None
    assert (ctypes.c_double * 6).from_address(child.buffers[1])[:] == [0, 1, 2, 3, 4, 5]
    released(child)
    assert memory() is None


def test_another_thread_may_release_the_export() -> None:
    x, memory = owned()
    taken = taken_array(x.__arrow_c_array__()[1])
    del x
    thread = threading.Thread(target=released, args=(taken,))
    thread.start()
    thread.join()
    assert memory() is None


def test_the_structures_describe_a_matrix_as_lists_of_one_size() -> None:
    x = at.arange(6).view(2, 3)
    schema_capsule, array_capsule = x.__arrow_c_array__(None)
    schema = ArrowSchema.from_address(pointer(schema_capsule, b"arrow_schema"))
    array = array_in(array_capsule)
    assert (schema.format, schema.name, schema.n_children) == (b"+w:3", b"", 1)
    child = schema.children[0][0]
    assert (child.format, child.name, child.n_children) == (b"l", b"item", 0)
    assert (array.length, array.null_count, array.offset, array.n_buffers) == (2, 0, 0, 1)
    assert (array.children[0][0].length, array.children[0][0].n_buffers) == (6, 2)
    assert array.children[0][0].buffers[1] == x.data_ptr()
    only = ArrowSchema.from_address(pointer(x.__arrow_c_schema__(), b"arrow_schema"))
    assert only is not None


def test_device_arrays_of_host_memory_say_the_host() -> None:
    x = at.arange(3)
    _, capsule = x.__arrow_c_device_array__(None, later_option=None)
    found = ArrowDeviceArray.from_address(pointer(capsule, b"arrow_device_array"))
    assert (found.device_type, found.device_id, found.sync_event) == (1, -1, None)
    assert found.array.buffers[1] == x.data_ptr()
    assert bridge.from_dlpack(_Exporter(x)).data_ptr() == x.data_ptr()
    with pytest.raises(NotImplementedError, match="later_option"):
        x.__arrow_c_device_array__(later_option=1)


class _Exporter:
    """An object that hands on one method of a tensor and nothing else."""

    def __init__(self, x: at.Tensor) -> None:
        self._x = x

    def __arrow_c_device_array__(self, requested_schema: Any = None, **options: Any) -> Any:
        return self._x.__arrow_c_device_array__(requested_schema, **options)


def test_read_only_memory_is_shared() -> None:
    pa = pytest.importorskip("pyarrow")
    x = bridge.from_dlpack(b"abcd")
    assert pa.array(x).buffers()[1].address == x.data_ptr()


@pytest.mark.parametrize("name", ["polars", "nanoarrow"])
def test_polars_and_nanoarrow_share_the_memory(name: str) -> None:
    library = pytest.importorskip(name)
    x = at.arange(4)
    made = library.Series(x) if name == "polars" else library.c_array(x)
    back = bridge.from_dlpack(made)
    assert back.data_ptr() == x.data_ptr()
    del x
    assert back.tolist() == [0, 1, 2, 3]


@pytest.mark.cuda
def test_device_arrays_of_cuda_memory_say_the_device() -> None:
    x = at.arange(6, device="cuda").view(2, 3)
    with pytest.raises(BufferError, match="__arrow_c_device_array__"):
        x.__arrow_c_array__()
    _, capsule = x.__arrow_c_device_array__()
    found = ArrowDeviceArray.from_address(pointer(capsule, b"arrow_device_array"))
    assert (found.device_type, found.device_id) == (2, 0)
    y = bridge.from_dlpack(_Exporter(x))
    assert (y.data_ptr(), str(y.device())) == (x.data_ptr(), "cuda:0")
    assert y.tolist() == [[0, 1, 2], [3, 4, 5]]
