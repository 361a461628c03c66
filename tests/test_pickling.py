# SPDX-License-Identifier: Apache-2.0
"""Pickling of both wrappers, with protocol 5 out-of-band buffers, and `copy`."""

import base64
import copy
import io
import pickle
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from tests.helpers.check import check_tensor
from tests.helpers.element_types import ELEMENT_TYPES, ElementType

both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def six(wrap: type) -> Any:
    return wrap(at.arange(6, dtype="float32").view(2, 3))


@both_wrappers
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_pickled_tensor_comes_back_with_its_class_and_values(wrap: type, protocol: int) -> None:
    x = six(wrap)
    y = pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is wrap
    check_tensor(y, (2, 3), data=x.numpy().tobytes())
    y.numpy()[0, 0] = 70
    assert x.numpy()[0, 0] == 0


@both_wrappers
@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_every_element_type_is_pickled(wrap: type, element: ElementType) -> None:
    data = element.sample_bytes(6)
    x = wrap(at.from_blob(bytearray(data), (2, 3), options=element.name))
    check_tensor(pickle.loads(pickle.dumps(x)), (2, 3), element, data=data)


@both_wrappers
@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1,) * 70], ids=str)
def test_every_shape_is_pickled(wrap: type, shape: tuple[int, ...]) -> None:
    y = pickle.loads(pickle.dumps(wrap(at.zeros(shape))))
    check_tensor(y, shape)


@both_wrappers
def test_out_of_band_buffers_share_the_memory(wrap: type) -> None:
    x = six(wrap)
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    raw = buffers[0].raw()
    assert raw.nbytes == 24
    assert np.frombuffer(raw, np.uint8).ctypes.data == x.numpy().ctypes.data
    assert len(stream) < 1000
    y = pickle.loads(stream, buffers=buffers)
    assert type(y) is wrap
    check_tensor(y, (2, 3), address=x.numpy().ctypes.data)
    y.numpy()[1, 1] = 44
    assert x.numpy()[1, 1] == 44


@both_wrappers
def test_large_streams_hold_no_data(wrap: type) -> None:
    x = wrap(at.zeros(1 << 20))
    buffers: list[pickle.PickleBuffer] = []
    assert len(pickle.dumps(x, protocol=5, buffer_callback=buffers.append)) < 1000


@both_wrappers
def test_buffers_from_elsewhere_stay_writable_or_read_only(wrap: type) -> None:
    """What comes out of a socket or a file: writable memory stays so, read-only too."""
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(six(wrap), protocol=5, buffer_callback=buffers.append)
    received = bytearray(buffers[0].raw())
    y = pickle.loads(stream, buffers=[received])
    check_tensor(y, (2, 3), address=np.frombuffer(received, np.uint8).ctypes.data)
    y.numpy()[0, 0] = 1
    assert np.frombuffer(received, np.float32)[0] == 1
    frozen = bytes(received)
    z = pickle.loads(stream, buffers=[frozen])
    assert not z.numpy().flags.writeable
    assert z.numpy().tobytes() == frozen


@both_wrappers
def test_buffers_of_the_wrong_size_are_refused(wrap: type) -> None:
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(six(wrap), protocol=5, buffer_callback=buffers.append)
    for wrong in (b"", bytes(23), bytes(4)):
        with pytest.raises((ValueError, BufferError, c10.EnforceNotMet, TypeError)):
            pickle.loads(stream, buffers=[wrong])


def test_views_keep_their_values() -> None:
    x = at.arange(24, dtype="int32").view(2, 3, 4)
    reversed_rows = bridge.from_dlpack(np.arange(6.0).reshape(2, 3)[::-1])
    views = (x.permute(2, 0, 1), x[:, 1:, ::2], x[1, 2, 3], x[:1].expand(5, 3, 4), reversed_rows)
    for view in views:
        for protocol in (2, 5):
            y = pickle.loads(pickle.dumps(view, protocol))
            assert y.tolist() == view.tolist()
            assert tuple(y.sizes()) == tuple(view.sizes())
        buffers: list[pickle.PickleBuffer] = []
        stream = pickle.dumps(view, protocol=5, buffer_callback=buffers.append)
        assert pickle.loads(stream, buffers=buffers).tolist() == view.tolist()


def test_a_small_view_of_a_large_tensor_is_a_small_pickle() -> None:
    view = at.zeros(1000, 1000)[::500, :3]
    assert len(pickle.dumps(view)) < 2000


def test_read_only_memory_stays_read_only_out_of_band() -> None:
    x = bridge.from_dlpack(b"abcd")
    y = pickle.loads(pickle.dumps(x))
    assert y.tolist() == list(b"abcd")
    buffers: list[pickle.PickleBuffer] = []
    stream = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    z = pickle.loads(stream, buffers=buffers)
    assert z.readonly
    assert z.data_ptr() == x.data_ptr()


@both_wrappers
def test_memory_of_torch_is_pickled_by_value(wrap: type) -> None:
    t = torch.arange(6.0)
    y = pickle.loads(pickle.dumps(wrap(bridge.from_dlpack(t))))
    assert y.numpy().tolist() == t.tolist()
    assert y.numpy().ctypes.data != t.data_ptr()


def test_strings_are_pickled() -> None:
    x = bridge.asarray(["a", "bcd", ""])
    y = pickle.loads(pickle.dumps(x))
    assert y.dtype() == c10.string
    assert y.tolist() == [b"a", b"bcd", b""]


def test_an_undefined_tensor_is_pickled() -> None:
    y = pickle.loads(pickle.dumps(caffe2.Tensor()))
    assert type(y) is caffe2.Tensor
    assert not y.defined()
    assert not y


@both_wrappers
def test_deepcopy_copies_the_memory(wrap: type) -> None:
    x = six(wrap)
    y = copy.deepcopy(x)
    assert type(y) is wrap
    check_tensor(y, (2, 3), data=x.numpy().tobytes())
    assert not np.shares_memory(x.numpy(), y.numpy())


def test_copy_of_a_caffe2_tensor_is_refused() -> None:
    with pytest.raises(TypeError, match="Clone"):
        copy.copy(six(caffe2.Tensor))


class Labelled(at.Tensor):
    """A tensor with an attribute, and a constructor of its own."""

    def __init__(self, source: at.Tensor, label: str) -> None:
        super().__init__(source)
        self.label = label


class LabelledCaffe2(caffe2.Tensor):
    """The same over the other wrapper."""

    def __init__(self, source: caffe2.Tensor, label: str) -> None:
        super().__init__(at.Tensor(source))
        self.label = label


@pytest.mark.parametrize("cls", [Labelled, LabelledCaffe2])
@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_a_subclass_comes_back_as_it_was(cls: Any, protocol: int) -> None:
    x = cls(caffe2.Tensor((2,), [1.0, 2.0]), "mine")
    y = pickle.loads(pickle.dumps(x, protocol))
    assert type(y) is cls
    assert y.label == "mine"
    assert y.numpy().tolist() == [1, 2]


class Demanding:
    """An element type that counts how many were made."""

    made = 0

    def __init__(self) -> None:
        Demanding.made += 1


def test_elements_are_unpickled_and_not_made_anew() -> None:
    x = caffe2.empty((3,), c10.TypeMeta.Register(Demanding))
    x.data()[1].mark = 7
    Demanding.made = 0
    y = pickle.loads(pickle.dumps(x))
    assert Demanding.made == 0
    assert y.data()[1].mark == 7
    assert y.sizes() == (3,)


@pytest.mark.parametrize(
    ("sizes", "dtype", "items"),
    [((3,), "string", [b"a"]), ((2**40,), "string", [b"a"]), ((1,), "float32", [1.0])],
)
def test_elements_that_do_not_fit_are_refused(sizes: Any, dtype: str, items: list[Any]) -> None:
    make, (_, _, _, _) = caffe2.empty((1,), "string").__reduce_ex__(5)
    with pytest.raises(c10.EnforceNotMet):
        make(caffe2.Tensor, sizes, c10.TypeMeta.Make(dtype), items)


@pytest.mark.cuda
@both_wrappers
@pytest.mark.parametrize("sizes", [(2, 3), (0, 3), ()], ids=str)
def test_torch_loads_tensors_back_to_their_device(wrap: type, sizes: tuple[int, ...]) -> None:
    """By its safe default, and back to the device."""
    x = wrap(at.ones(sizes, device=f"cuda:{torch.cuda.device_count() - 1}"))
    file = io.BytesIO()
    torch.save(x, file)
    file.seek(0)
    y = torch.load(file)
    assert type(y) is wrap
    assert (y.device(), y.sizes()) == (x.device(), sizes)
    assert at.Tensor(y).tolist() == at.Tensor(x).tolist()
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        assert pickle.loads(pickle.dumps(x, protocol)).device() == x.device()


# Of version 0.1.0 before its modules moved: five tensors, by the module paths of that time.
OLD_PICKLE = (
    "gASVVgEAAAAAAAAojA9icmlkZ2UucGlja2xpbmeUjAdfYnVmZmVylJOUKIwUYnJpZGdlLmNhZmZlMi50ZW5zb3KU"
    "jAZUZW5zb3KUk5SMCGJ1aWx0aW5zlIwJYnl0ZWFycmF5lJOUQwgAAIA/AAAAQJSFlFKUSwKFlIwUYnJpZGdlLmMx"
    "MC50eXBlX21ldGGUjAdhc190eXBllJOUjAdmbG9hdDMylIWUUpR0lFKUaAIojBBicmlkZ2UuYXQudGVuc29ylIwG"
    "VGVuc29ylJOUaAhDCAAAgD8AAIA/lIWUUpRLAoWUaBJ0lFKUaACMCl91bmRlZmluZWSUk5RoBYWUUpRoAIwGX3Np"
    "emVklJOUKGgFSwJLA4aUaA1oHpOUKVKUjANjcHWUdJRSlGgAjAZfaXRlbXOUk5QoaAVLAoWUaA+MBnN0cmluZ5SF"
    "lFKUXZQoQwFhlEMCYmOUZXSUUpR0lC4="
)


def test_pickles_of_earlier_versions_load() -> None:
    c, a, undefined, sized, strings = pickle.loads(base64.b64decode(OLD_PICKLE))
    assert [type(x) for x in (c, a)] == [caffe2.Tensor, at.Tensor]
    assert c.data().tolist() == [1, 2]
    assert a.tolist() == [1, 1]
    assert not undefined.defined()
    assert sized.sizes() == (2, 3)
    assert not sized.storage_initialized()
    assert list(strings.data()) == [b"a", b"bc"]
