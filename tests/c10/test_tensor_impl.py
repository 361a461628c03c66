# SPDX-License-Identifier: Apache-2.0
"""`c10.TensorImpl` under both wrappers, and the one that stands for no tensor at all."""

import gc

import pytest

from bridge import at, c10, caffe2


def test_wrappers_hold_a_tensor_impl() -> None:
    tensor = caffe2.Tensor((2, 3), "cpu")
    assert isinstance(tensor.unsafeGetTensorImpl(), c10.TensorImpl)
    assert tensor.unsafeGetTensorImpl() is tensor.unsafeGetTensorImpl()


def test_wrappers_share_a_tensor_impl() -> None:
    tensor = at.empty((2, 3))
    first, second = caffe2.Tensor(tensor), caffe2.Tensor(tensor)
    assert first.unsafeGetTensorImpl() is second.unsafeGetTensorImpl()
    assert first.UnsafeSharedInstance().unsafeGetTensorImpl() is first.unsafeGetTensorImpl()
    assert first.is_same(second)
    assert at.Tensor(first).is_same(tensor)
    assert at.Tensor(tensor).is_same(tensor)


def test_own_metadata_is_another_tensor_impl() -> None:
    tensor = caffe2.empty((2, 3), "float32")
    for other in [tensor.Alias(), tensor.Clone(), caffe2.empty((2, 3), "float32")]:
        assert other.unsafeGetTensorImpl() is not tensor.unsafeGetTensorImpl()
        assert not other.is_same(tensor)
    wrapped = at.Tensor(tensor)
    assert not wrapped.alias().is_same(wrapped)
    assert not wrapped.detach().is_same(wrapped)
    assert not wrapped.view(6).is_same(wrapped)


def test_a_tensor_impl_outlives_its_wrappers() -> None:
    tensor = caffe2.Tensor((3,), [1.0, 2.0, 3.0])
    impl = tensor.unsafeGetTensorImpl()
    kept = caffe2.Tensor(at.Tensor(tensor))
    del tensor
    gc.collect()
    assert kept.unsafeGetTensorImpl() is impl
    assert kept.numpy().tolist() == [1.0, 2.0, 3.0]


def test_undefined_tensors_share_one_impl() -> None:
    undefined = c10.UndefinedTensorImpl.singleton()
    assert undefined is c10.UndefinedTensorImpl.singleton()
    assert isinstance(undefined, c10.TensorImpl)
    assert isinstance(undefined, c10.UndefinedTensorImpl)
    assert caffe2.Tensor().unsafeGetTensorImpl() is undefined
    assert caffe2.Tensor((2, 3), "cpu").unsafeGetTensorImpl() is not undefined


def test_undefined_tensors_are_false_and_have_a_repr() -> None:
    tensor = caffe2.Tensor()
    assert not tensor
    assert not tensor.defined()
    assert tensor.is_same(caffe2.Tensor())
    wrapped = at.Tensor(tensor)
    assert wrapped.defined() is False
    assert isinstance(repr(tensor), str)
    assert isinstance(repr(wrapped), str)
    assert at.empty((2, 3)).defined() is True
    assert caffe2.Tensor((2, 3), "cpu").defined() is True


@pytest.mark.parametrize(
    "use",
    [
        lambda tensor: at.Tensor(tensor).fill_(1.0),
        lambda tensor: at.Tensor(tensor).tolist(),
        lambda tensor: at.Tensor(tensor).numpy(),
        lambda tensor: at.Tensor(tensor).to_torch(),
        lambda tensor: at.Tensor(tensor).clone(),
        lambda tensor: at.Tensor(tensor).resize_(2, 3),
        lambda tensor: at.Tensor(tensor) + 1,
        lambda tensor: at.Tensor(tensor)[0],
        lambda tensor: tensor.Resize(2, 3),
        lambda tensor: tensor.mutable_data("float32"),
        lambda tensor: tensor.data("float32"),
    ],
    ids=[
        *["fill_", "tolist", "numpy", "to_torch", "clone", "resize_", "add", "index"],
        *["Resize", "mutable_data", "data"],
    ],
)
def test_undefined_tensors_refuse_to_be_used(use) -> None:
    tensor = caffe2.Tensor()
    with pytest.raises((RuntimeError, BufferError, TypeError, ValueError, IndexError)):
        use(tensor)
    assert not tensor.defined()
    assert not caffe2.Tensor()


@pytest.mark.parametrize("argument", [3, "text", None, [1.0, 2.0], object()])
def test_wrappers_wrap_only_wrappers(argument: object) -> None:
    with pytest.raises((TypeError, RuntimeError)):
        at.Tensor(argument)
