# SPDX-License-Identifier: Apache-2.0
"""Views whose sizes, strides or number of dimensions are as large as numbers get."""

import numpy as np
import pytest

from bridge import at, c10, caffe2
from bridge.caffe2 import workspace
from tests.helpers.isolate import isolated


def test_windows_that_are_too_many_to_count_are_refused() -> None:
    wide = at.zeros(1).expand(2**40)
    with pytest.raises(c10.EnforceValueError, match="more elements than an int64 counts"):
        wide.unfold(0, 2**39, 1)
    assert wide.storage().use_count() == 1
    assert wide.unfold(0, 2**39, 2**38).sizes() == (3, 2**39)


@isolated
def test_a_tensor_of_very_many_dimensions_is_copied() -> None:
    """Copying takes no stack for dimensions of one element."""
    many = (1,) * 300_000
    x = at.arange(4).as_strided((*many, 2, *many), (*many, 2, *many))
    copied = x.clone()
    assert copied.dim() == 600_001
    assert copied.is_contiguous()
    assert copied.view(2).tolist() == [0, 2]


@isolated
def test_a_tensor_of_very_many_dimensions_becomes_a_list() -> None:
    """Lists are nested without taking stack, and compared without torch, which counts to 64."""
    many = (1,) * 100_000
    x = at.arange(4).as_strided((2, *many, 2), (1, *many, 1))
    first = second = x.tolist()
    for _ in many:
        assert len(first) == (2 if first is second else 1)
        first, second = first[0], second[-1]
    assert (first[0], second[-1]) == ([0, 1], [1, 2])
    assert x.equal(x.clone())
    assert not x.equal(x + 1)
    assert at.zeros(*many, 0, 2**40).view(1, 0, 5).tolist() == [[]]
    empty = at.zeros(2, 0, 2**40, dtype="int8")
    assert empty.tolist() == [[], []]
    with pytest.raises(BufferError, match="too large for NumPy"):
        at.zeros(2**40, 0, 2**22).numpy()


def test_an_empty_view_may_have_any_strides() -> None:
    x = at.zeros(4).as_strided((2, 0, 3), (2**62, 2**62, -(2**62)))
    for view in (x, x[1], x.transpose(0, 2), x[::-1], x.unsqueeze(1), x.flatten(), x.diagonal()):
        assert view.numel() == 0
        assert view.clone().tolist() == view.tolist()


# A row of each lies in front of the storage, or further behind it than an int64 counts.
NOWHERE = {
    "in front": lambda x: x.as_strided((2, 0), (-1, 1))[1],
    "sliced": lambda x: x.as_strided((3, 0), (-1, 1))[1:],
    "below int64": lambda x: x.as_strided((4, 0), (2**62, 1))[3],
    "past int64": lambda x: x.as_strided((2, 0), (2**61, 1))[1].view("uint8"),
    "diagonal": lambda x: x.as_strided((0, 9), (1, -1)).diagonal(3),
}


@pytest.mark.parametrize("name", NOWHERE)
def test_a_view_of_nothing_has_a_place_in_its_storage(name: str) -> None:
    """So it can be given elements, like any other tensor."""
    x = at.arange(4).to("float32")
    view = NOWHERE[name](x)
    assert view.numel() == 0
    assert view.storage_offset() >= 0
    assert view.flatten().view("uint8").storage_offset() >= 0
    caffe2.Tensor(view.alias().flatten()).CopyFrom(caffe2.Tensor(at.zeros(3)))
    assert view.resize_(2).numpy().nbytes == 2 * view.itemsize()
    tensor = caffe2.Tensor(NOWHERE[name](x).flatten())
    tensor.Resize(3)
    tensor.mutable_data()[:] = 1
    assert tensor.data().tolist() == [1] * 3


@isolated
def test_a_feed_replaces_a_view_without_elements() -> None:
    workspace.FeedBlob("x", np.zeros(8, np.float32))
    held = at.Tensor(workspace.Workspace.current.blobs["x"].Get(caffe2.Tensor))
    held.set_(held.as_strided((2, 0), (-8, 1))[1])
    workspace.FeedBlob("x", np.full(3, 7, np.float32))
    assert workspace.FetchBlob("x").tolist() == [7, 7, 7]


# Each is of more bytes than an int64 counts, in a few bytes of memory.
REPEATED = {
    "expand": lambda x: x[:1].expand(2**61),
    "expand a dimension": lambda x: x[:, None].expand(4, 2**59),
    "as_strided": lambda x: x.as_strided((2**61,), (0,)),
    "set_": lambda x: x.set_(x, 0, (2**61,), (0,)),
    "unfold": lambda x: x[:1].expand(2**33).unfold(0, 2**32, 2**3),
    "empty_strided": lambda x: at.empty_strided((2**61,), (0,)),
    "from_blob": lambda x: at.from_blob(x, (2**61,), (0,)),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_elements_have_bytes_that_count(name: str) -> None:
    with pytest.raises(ValueError, match="more bytes than an int64 counts"):
        REPEATED[name](at.zeros(4))


def test_a_view_of_smaller_elements_refuses_sizes_beyond_int64() -> None:
    """The sizes beside a size of zero are limited, too."""
    with pytest.raises(ValueError, match="does not fit an int64"):
        at.empty((0, 2**60), "int64").view("uint8")
    with pytest.raises(ValueError, match="does not fit an int64"):
        at.empty((2**40, 0, 2**22), "int64").view("uint8")
    assert at.empty((2**58, 0, 2), "int64").view("uint8").sizes() == (2**58, 0, 16)


def test_set_refuses_sizes_of_more_elements_than_int64_counts() -> None:
    x = at.zeros(4)
    with pytest.raises(ValueError, match="more elements than an int64 counts"):
        x.set_(x, 0, (2, 2**63 - 1, 25))


def test_windows_of_one_element_have_any_stride() -> None:
    x = at.zeros(4)
    assert x.as_strided((1,), (2**62,)).unfold(0, 1, 2**31).tolist() == [[0]]
    assert x.as_strided((5, 0), (2**62, 1)).unfold(0, 1, 3).sizes() == (2, 0, 1)


def test_a_stride_without_an_opposite_is_written_where_it_steps_nowhere() -> None:
    x = at.zeros(4).as_strided((1, 2), (-(2**63), -1), 3)
    x.add_(1)
    assert x.fill_(2).tolist() == [[2, 2]]
    with pytest.raises(ValueError, match="beyond an int64"):
        at.empty_strided((2,), (2**63 - 1,))


@isolated
def test_a_tensor_without_a_type_refuses_to_read_memory_from_outside() -> None:
    tensor = caffe2.Tensor((2,), "cpu")
    tensor.storage().UniqueStorageShareExternalPointer(bytearray(8), "float32", 8)
    assert not tensor.dtype()
    untyped = c10.dtype(tensor.dtype())
    for refused in (
        lambda: caffe2.ReinitializeTensor(tensor, (3,), untyped),
        lambda: caffe2.Tensor((2,), [1, 2], tensor.dtype()),
        lambda: caffe2.empty((2,), untyped),
        lambda: at.empty((2,), untyped),
        tensor.data,
        tensor.Clone,
    ):
        with pytest.raises(c10.EnforceNotMet):
            refused()
        assert tensor.sizes() == (2,)
    assert tensor.mutable_data("float32").tolist() == [0, 0]


def test_a_tensor_without_a_type_refuses_rows_beside_elements_of_another() -> None:
    """Another tensor fills the storage that an untyped one shares, with Python objects."""
    untyped = caffe2.Tensor((0,), "cpu")
    other = untyped.Alias()
    other.Resize(2)
    other.mutable_data("string")
    untyped.Resize(2)
    with pytest.raises(c10.EnforceNotMet, match="no element type"):
        untyped.Extend(1)
    assert untyped.sizes() == (2,)
