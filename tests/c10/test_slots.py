# SPDX-License-Identifier: Apache-2.0
"""Objects that Python makes past the constructors: refused, or as safe as any other."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from bridge import at, c10, caffe2

SEALED = [
    c10.TensorImpl,
    c10.UndefinedTensorImpl,
    c10.Storage,
    c10.TypeMeta,
    type(at.Tensor.__dict__["dtype"]),
]
every_sealed = pytest.mark.parametrize("cls", SEALED, ids=lambda cls: cls.__name__)
every_wrapper = pytest.mark.parametrize("cls", [at.Tensor, caffe2.Tensor])


@every_sealed
def test_a_sealed_class_makes_no_objects_for_python(cls: Any) -> None:
    with pytest.raises(TypeError, match="not created by calling the class"):
        cls()
    with pytest.raises(TypeError, match="not created by calling the class"):
        cls.__new__(cls)
    with pytest.raises(TypeError, match="not safe"):
        object.__new__(cls)


def test_a_subclass_does_not_get_round_it() -> None:
    class Mine(c10.TensorImpl):
        pass

    with pytest.raises(TypeError, match="not created by calling the class"):
        Mine()
    with pytest.raises(TypeError):
        c10.TensorImpl.__new__(Mine)


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_a_storage_is_neither_pickled_nor_copied_apart_from_its_tensor(protocol: int) -> None:
    for storage in (caffe2.Tensor("cpu").storage(), caffe2.empty([3], "uint8").storage()):
        with pytest.raises(TypeError, match="without its tensor"):
            pickle.dumps(storage, protocol)
        with pytest.raises(TypeError, match="without its tensor"):
            copy.copy(storage)
        with pytest.raises(TypeError, match="without its tensor"):
            copy.deepcopy(storage)
        with pytest.raises(TypeError):
            storage.__reduce__()


def test_statistics_and_buffers_of_an_allocator_are_not_pickled() -> None:
    allocator = c10.Allocator()
    for thing in (allocator.stats, allocator.allocate(16)):
        with pytest.raises(TypeError):
            pickle.dumps(thing)
        assert not hasattr(thing, "__setstate__")


def test_the_undefined_impl_is_one_even_after_pickling() -> None:
    undefined = c10.UndefinedTensorImpl.singleton()
    assert pickle.loads(pickle.dumps(undefined)) is undefined
    assert copy.copy(undefined) is undefined
    assert not undefined.dtype()


@every_wrapper
def test_a_wrapper_made_past_its_constructor_is_undefined(cls: Any) -> None:
    tensor = cls.__new__(cls)
    assert not tensor.defined()
    assert tensor.unsafeGetTensorImpl() is c10.UndefinedTensorImpl.singleton()
    assert not tensor.dtype()
    for method in ("sizes", "strides", "numel", "dim", "storage", "is_contiguous", "nbytes"):
        with pytest.raises(c10.EnforceNotMet, match="undefined"):
            getattr(tensor, method)()


@every_wrapper
def test_a_constructor_may_be_called_again(cls: Any) -> None:
    source = at.zeros(3)
    tensor = cls.__new__(cls)
    tensor.__init__(source)
    assert tensor.is_same(source)
    tensor.__init__(at.ones(2))
    assert tensor.numpy().tolist() == [1, 1]
    with pytest.raises(c10.EnforceNotMet):
        tensor.__init__(object())
    assert tensor.numpy().tolist() == [1, 1]
