# SPDX-License-Identifier: Apache-2.0
"""`__dlpack__` and `__dlpack_device__` of both wrappers, read by the ctypes consumer."""

import ctypes
import gc
import weakref
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from tests.helpers import dlpack_structs as abi
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_consumer import take, take_capsule
from tests.helpers.dlpack_producer import ManagedTensor, Producer, TensorSpec
from tests.helpers.element_types import ELEMENT_TYPES, ElementType

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six(wrap: type) -> Any:
    """(2, 3) float32, 0 to 5, in memory of the package."""
    return wrap(at.arange(6, dtype="float32").view(2, 3))


@both_wrappers
def test_an_export_agrees_with_every_accessor(wrap: type) -> None:
    x = six(wrap)
    check_tensor(x, (2, 3), data=np.arange(6, dtype=np.float32).tobytes())


@both_wrappers
@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 0, 3), (1, 2, 1, 3)], ids=str)
def test_every_element_type_is_exported(
    wrap: type, element: ElementType, shape: tuple[int, ...]
) -> None:
    x = at.empty(shape, dtype=element.name)
    data = element.sample_bytes(x.numel())
    if data:
        ctypes.memmove(x.data_ptr(), data, len(data))
    check_tensor(wrap(x), shape, element, data=data)


VIEWS: dict[str, Any] = {
    "transposed": lambda x: x.t(),
    "every other": lambda x: x[::2, 1::2],
    "expanded": lambda x: x[:, :1].expand(4, 7),
    "diagonal": lambda x: x.diagonal(),
    "row": lambda x: x.select(0, 2),
    "element": lambda x: x[1, 1],
    "nothing": lambda x: x[:, 2:2],
    "windows": lambda x: x.unfold(1, 3, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_share_the_memory(name: str) -> None:
    source = np.arange(20, dtype=np.int32).reshape(4, 5)
    view = VIEWS[name](bridge.from_dlpack(source))
    element = next(row for row in ELEMENT_TYPES if row.name == "int32")
    taken = take(view)
    assert taken.shape == tuple(view.sizes())
    if view.numel():
        inside = taken.address - source.ctypes.data
        assert 0 <= inside < source.nbytes
    taken.release()
    check_tensor(view, tuple(view.sizes()), element, strides=tuple(view.strides()))


@both_wrappers
@pytest.mark.parametrize("max_version", [None, (0, 8), (0, 99)])
def test_a_consumer_below_version_1_gets_a_legacy_capsule(wrap: type, max_version: Any) -> None:
    capsule = six(wrap).__dlpack__(max_version=max_version)
    assert abi.capsule_name(capsule) == abi.LEGACY_NAME
    taken = take_capsule(capsule)
    assert taken.shape == (2, 3)
    taken.release()


@both_wrappers
def test_legacy_is_the_default(wrap: type) -> None:
    assert abi.capsule_name(six(wrap).__dlpack__()) == abi.LEGACY_NAME


@both_wrappers
@pytest.mark.parametrize("max_version", [(1, 0), (1, 1), (1, 3), (1, 8), (2, 0), (99, 0)])
def test_every_other_consumer_gets_a_versioned_capsule(
    wrap: type, max_version: tuple[int, int]
) -> None:
    taken = take(six(wrap), max_version=max_version)
    assert taken.version is not None
    assert taken.version[0] == 1
    assert taken.flags == 0
    taken.release()


@both_wrappers
def test_copy_true_copies_and_none_or_false_shares(wrap: type) -> None:
    x = six(wrap)
    address = take_address(x)
    for copy in (None, False):
        taken = take(x, copy=copy)
        assert taken.address == address
        assert not taken.copied
        taken.release()
    taken = take(x, copy=True)
    assert taken.address != address
    assert taken.copied
    assert not taken.readonly
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    ctypes.memset(taken.address, 0xFF, 24)
    assert x.numpy().tolist() == [[0, 1, 2], [3, 4, 5]]
    taken.release()


def take_address(x: Any) -> int:
    taken = take(x)
    taken.release()
    return taken.address


@both_wrappers
def test_a_legacy_capsule_may_be_a_copy(wrap: type) -> None:
    x = six(wrap)
    taken = take(x, max_version=None, copy=True)
    assert taken.address != take_address(x)
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()


@both_wrappers
@pytest.mark.parametrize("dl_device", [(abi.CPU, 0), None])
def test_the_device_it_is_on(wrap: type, dl_device: Any) -> None:
    x = six(wrap)
    assert x.__dlpack_device__() == (abi.CPU, 0)
    for copy in (None, False):
        taken = take(x, dl_device=dl_device, copy=copy)
        assert taken.device == (abi.CPU, 0)
        assert taken.address == take_address(x)
        taken.release()


@both_wrappers
@pytest.mark.parametrize("dl_device", [(9999, 0), (7, 0), (4, 0)])
def test_a_device_out_of_reach_is_refused(wrap: type, dl_device: tuple[int, int]) -> None:
    with pytest.raises(BufferError):
        six(wrap).__dlpack__(max_version=(1, 3), dl_device=dl_device)


@both_wrappers
def test_another_device_is_refused_with_copy_false(wrap: type) -> None:
    with pytest.raises((BufferError, ValueError)):
        six(wrap).__dlpack__(max_version=(1, 3), dl_device=(abi.CUDA, 0), copy=False)


@both_wrappers
def test_stream_none_is_for_the_cpu(wrap: type) -> None:
    taken = take(six(wrap), stream=None)
    taken.release()


@both_wrappers
@pytest.mark.parametrize(
    "arguments",
    [
        {"max_version": 1},
        {"max_version": "1.3"},
        {"max_version": (1,)},
        {"max_version": ("1", "3")},
        {"copy": "yes"},
        {"dl_device": "cpu"},
        {"dl_device": (1,)},
        {"dl_device": (1, -1)},
        {"max_version": (None, None)},
        {"stream": "default"},
        {"device": "cpu"},
    ],
    ids=str,
)
def test_arguments_of_the_wrong_kind_are_refused(wrap: type, arguments: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, BufferError)):
        six(wrap).__dlpack__(**arguments)


@both_wrappers
def test_arguments_are_by_name(wrap: type) -> None:
    with pytest.raises(TypeError):
        six(wrap).__dlpack__(None)
    with pytest.raises(TypeError):
        six(wrap).__dlpack__(stream=None, version=(1, 0))


def test_read_only_memory_is_flagged_and_refused_to_legacy_consumers() -> None:
    x = bridge.from_dlpack(bytes(range(6)))
    taken = take(x)
    assert taken.readonly
    assert not taken.copied
    taken.release()
    with pytest.raises(BufferError):
        x.__dlpack__()
    with pytest.raises(BufferError):
        x.__dlpack__(max_version=(0, 8))
    # A copy is the consumer's own, so that a legacy capsule has nothing left to hide.
    legacy = take(x, max_version=None, copy=True)
    assert legacy.data() == bytes(range(6))
    legacy.release()
    copied = take(x, copy=True)
    assert copied.copied
    assert not copied.readonly
    copied.release()


def test_types_that_dlpack_lacks_are_refused() -> None:
    x = at.tensor([1.0])
    assert take_address(x)
    for holder in (bridge.asarray(["a", "bc"]), bridge.asarray(b"abc")):
        for max_version in (None, (1, 3)):
            with pytest.raises(BufferError):
                holder.__dlpack__(max_version=max_version)


@pytest.mark.parametrize("wrap", [caffe2.Tensor])
def test_tensors_without_elements_to_export_are_refused(wrap: type) -> None:
    for x in (wrap(), wrap([2, 3], "cpu")):
        for max_version in (None, (1, 3)):
            with pytest.raises((BufferError, c10.EnforceNotMet)):
                x.__dlpack__(max_version=max_version)


@both_wrappers
@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_an_export_keeps_the_memory(wrap: type, max_version: Any) -> None:
    owner = np.arange(6, dtype=np.float32)
    alive = weakref.ref(owner)
    x = wrap(bridge.from_dlpack(owner))
    del owner
    capsule = x.__dlpack__(max_version=max_version)
    del x
    gc.collect()
    assert alive() is not None
    taken = take_capsule(capsule)
    del capsule
    assert alive() is not None
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()
    assert alive() is None


@both_wrappers
@pytest.mark.parametrize("max_version", [None, (1, 3)])
def test_a_capsule_without_a_consumer_frees_the_memory(wrap: type, max_version: Any) -> None:
    managed = ManagedTensor(TensorSpec.of_array(np.arange(6, dtype=np.float32)), versioned=True)
    x = wrap(bridge.from_dlpack(managed.capsule()))
    capsule = x.__dlpack__(max_version=max_version)
    del x
    assert managed.deleted == 0
    del capsule
    assert managed.deleted == 1


@both_wrappers
def test_shape_and_strides_outlive_a_resize(wrap: type) -> None:
    x = wrap(at.empty(2, 3))
    x.numpy()[:] = np.arange(6).reshape(2, 3)
    taken = take(x)
    (x.Resize(3, 5) if wrap is caffe2.Tensor else x.resize_(3, 5))
    again = (ctypes.c_int64 * 2).from_address(
        abi.DLManagedTensorVersioned.from_address(taken.pointer).dl_tensor.shape
    )
    assert tuple(again) == (2, 3)
    assert taken.data() == np.arange(6, dtype=np.float32).tobytes()
    taken.release()


@both_wrappers
def test_bridge_reads_its_own_capsules(wrap: type) -> None:
    x = six(wrap)
    for max_version in (None, (1, 3)):
        again = bridge.from_dlpack(x.__dlpack__(max_version=max_version))
        check_tensor(again, (2, 3), address=take_address(x))


def test_a_producer_that_goes_in_and_out_is_released_at_the_end() -> None:
    """In by one capsule and out by another: one owner, released at the very end."""
    producer = Producer(TensorSpec.of_array(np.arange(4, dtype=np.float32)))
    x = bridge.from_dlpack(producer)
    capsules = [x.__dlpack__(max_version=version) for version in (None, (1, 0), (1, 3))]
    taken = [take_capsule(capsule) for capsule in capsules]
    del x, capsules
    for one in taken:
        assert producer.deletions == [0]
        assert one.address == producer.spec.address
        one.release()
    assert producer.deletions == [1]
