# SPDX-License-Identifier: Apache-2.0
"""Views whose sizes, strides or number of dimensions are as large as numbers get."""

import pytest

from bridge import at, c10, caffe2
from tests.helpers.isolate import isolated


def test_windows_that_are_too_many_to_count() -> None:
    wide = at.zeros(1).expand(2**40)
    with pytest.raises(c10.EnforceValueError, match="more elements than an int64 counts"):
        wide.unfold(0, 2**39, 1)
    assert wide.storage().use_count() == 1
    assert wide.unfold(0, 2**39, 2**38).sizes() == (3, 2**39)


@isolated
def test_a_copy_with_very_many_dimensions() -> None:
    """Copying takes no stack for dimensions of one element."""
    many = (1,) * 300_000
    x = at.arange(4).as_strided((*many, 2, *many), (*many, 2, *many))
    copied = x.clone()
    assert copied.dim() == 600_001
    assert copied.is_contiguous()
    assert copied.view(2).tolist() == [0, 2]


def test_an_empty_view_may_have_any_strides() -> None:
    x = at.zeros(4).as_strided((2, 0, 3), (2**62, 2**62, -(2**62)))
    for view in (x, x[1], x.transpose(0, 2), x[::-1], x.unsqueeze(1), x.flatten(), x.diagonal()):
        assert view.numel() == 0
        assert view.clone().tolist() == view.tolist()


@isolated
def test_memory_from_outside_under_a_tensor_without_a_type() -> None:
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


def test_rows_of_no_type_beside_elements() -> None:
    """Another tensor fills the storage that an untyped one shares, with Python objects."""
    untyped = caffe2.Tensor((0,), "cpu")
    other = untyped.Alias()
    other.Resize(2)
    other.mutable_data("string")
    untyped.Resize(2)
    with pytest.raises(c10.EnforceNotMet, match="no element type"):
        untyped.Extend(1)
    assert untyped.sizes() == (2,)
