# SPDX-License-Identifier: Apache-2.0
"""Names from before the migration: they work, and name the new one."""

from typing import Any

import pytest

from bridge import caffe2

from .state import filled


@pytest.mark.parametrize(
    ("old", "new", "call", "expected"),
    [
        ("ndim", r"\bdim\b", lambda t: t.ndim(), 2),
        ("size", r"\bnumel\b", lambda t: t.size(), 6),
        ("dims", r"\bsizes\b", lambda t: tuple(t.dims()), (2, 3)),
        ("dim(0)", r"\bsize\b", lambda t: t.dim(0), 2),
        ("dim(1)", r"\bsize\b", lambda t: t.dim(1), 3),
        ("dim(-1)", r"\bsize\b", lambda t: t.dim(-1), 3),
        ("meta", r"\bdtype\b", lambda t: t.meta().name, "float32"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_old_names_work_and_warn(old: str, new: str, call: Any, expected: Any) -> None:
    tensor = filled((2, 3))
    with pytest.warns(DeprecationWarning, match=new) as caught:
        assert call(tensor) == expected
    assert len(caught) == 1
    assert caught[0].filename == __file__  # the caller's line, not ours


@pytest.mark.filterwarnings("error")
def test_new_names_do_not_warn() -> None:
    tensor = filled((2, 3))
    assert tensor.dim() == 2
    assert tensor.numel() == 6
    assert tensor.sizes() == (2, 3)
    assert tensor.size(1) == 3
    assert tensor.dtype().name == "float32"


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_old_names_of_tensors_without_memory() -> None:
    tensor = caffe2.Tensor((4, 5), "cpu")
    assert tensor.ndim() == 2
    assert tensor.size() == 20
    assert tensor.dims() == (4, 5)
    assert not tensor.meta()
    assert caffe2.Tensor((), "cpu").size() == 1


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_shrink_is_shrink_to() -> None:
    tensor = filled((3, 2))
    tensor.Shrink(2)
    assert tensor.sizes() == (2, 2)
    assert tensor.capacity_nbytes() == 24
