# SPDX-License-Identifier: Apache-2.0
"""`dtype` and `device` of both wrappers: attributes, as NumPy has them, and methods, as ATen."""

from __future__ import annotations

import inspect
from operator import attrgetter, methodcaller

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2


class OwnTensor(at.Tensor):
    """A subclass with a dictionary of its own."""


def tensors() -> list[at.Tensor | caffe2.Tensor]:
    x = at.zeros(2, 3)
    return [x, caffe2.Tensor(x), OwnTensor(x)]


# Not of a subclass, whose objects have attributes of their own.
@pytest.mark.parametrize("x", tensors()[:2], ids=["at", "caffe2"])
@pytest.mark.parametrize("name", ["dtype", "device"])
def test_it_cannot_be_set(x: at.Tensor, name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(x, name, None)


@pytest.mark.parametrize("x", tensors(), ids=["at", "caffe2", "subclass"])
@pytest.mark.parametrize("name", ["dtype", "device"])
class TestBothWays:
    def test_the_call_gives_the_attribute(self, x: at.Tensor, name: str) -> None:
        read, called = attrgetter(name), methodcaller(name)
        assert read(x) is called(x) is getattr(x, name)()
        assert getattr(type(x), name)(x) is read(x)

    def test_the_call_takes_no_arguments(self, x: at.Tensor, name: str) -> None:
        with pytest.raises(TypeError, match="argument"):
            methodcaller(name, 1)(x)
        with pytest.raises(TypeError, match="argument"):
            methodcaller(name, of=1)(x)

    def test_objects_that_are_not_its_tensors_are_refused(self, x: at.Tensor, name: str) -> None:
        descriptor = getattr(at.Tensor, name)
        for other in (1, None, caffe2.Tensor([1], "cpu")):
            with pytest.raises(TypeError, match=f"{name}.*Tensor"):
                descriptor(other)
        with pytest.raises(TypeError):
            descriptor.__get__(1)

    def test_its_docstring_and_repr_name_it(self, x: at.Tensor, name: str) -> None:
        descriptor = inspect.getattr_static(type(x), name)
        assert (descriptor.__name__, descriptor.__objclass__) in [
            (name, at.Tensor),
            (name, caffe2.Tensor),
        ]
        assert f"x.{name}()" in (inspect.getdoc(descriptor) or "")
        assert name in repr(descriptor)


def test_undefined_tensors_have_no_dtype_and_refuse_device() -> None:
    assert not at.Tensor().dtype
    assert caffe2.Tensor().dtype is caffe2.Tensor().dtype()
    for name in ("at", "caffe2"):
        with pytest.raises(c10.EnforceNotMet, match="undefined"):
            _ = getattr(bridge, name).Tensor().device


def test_attribute_and_call_agree_in_a_loop() -> None:
    # enough calls for CPython to specialise the call, on objects of different classes
    for x in tensors() * 200:
        assert x.dtype() == x.dtype == "float32"
        assert x.device() == x.device == "cpu"


def test_numpy_torch_and_factories_take_the_attributes_and_their_calls() -> None:
    x = at.zeros(2, dtype="int16")
    assert np.dtype(x.dtype) == np.dtype(x.dtype()) == np.int16
    assert np.zeros(2, x.dtype).dtype == np.ones(2, dtype=x.dtype()).dtype == np.int16
    assert np.zeros(2).astype(x.dtype).dtype == np.int16
    assert torch.zeros(2, device=x.device).device == x.device == torch.device(x.device)
    assert torch.zeros(2, dtype=x.dtype.torch, device=x.device()).to(x.device).device == x.device
    assert at.zeros(2, dtype=x.dtype, device=x.device).dtype == x.dtype
    assert caffe2.Tensor([2], x.device).device == caffe2.empty([2], x.dtype).device == "cpu"
