# SPDX-License-Identifier: Apache-2.0
"""torch tensors that other code cannot read: an error with its reason, never wrong values.

Each test runs in a process of its own, since their memory is not what they say.
"""

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch

import bridge
from bridge import at, caffe2
from tests.helpers.isolate import isolated
from tests.helpers.undefined_tensor import undefined_tensor


def nested() -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its nested tensors a prototype
        return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])


def jagged() -> torch.Tensor:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged)


def fake() -> torch.Tensor:
    from torch._subclasses import FakeTensorMode

    return FakeTensorMode().from_tensor(torch.ones(3))


def fake_empty() -> torch.Tensor:
    from torch._subclasses import FakeTensorMode

    with FakeTensorMode():
        return torch.empty(3, 4)


def functional() -> torch.Tensor:
    return torch._to_functional_tensor(torch.ones(3))


def two_tensor() -> torch.Tensor:
    from torch.testing._internal.two_tensor import TwoTensor

    return TwoTensor(torch.ones(3), torch.ones(3))


def sparse_compressed(layout: torch.layout) -> torch.Tensor:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch calls its compressed tensors a beta
        return torch.eye(4).to_sparse(layout=layout, **blocks(layout))


def blocks(layout: torch.layout) -> dict[str, Any]:
    return {"blocksize": (2, 2)} if layout in (torch.sparse_bsr, torch.sparse_bsc) else {}


def resized_to_nothing() -> torch.Tensor:
    t = torch.ones(4)
    t.untyped_storage().resize_(0)
    return t


def view_resized_to_nothing() -> torch.Tensor:
    t = torch.ones(4)[1:3]
    t.untyped_storage().resize_(0)
    return t


REFUSED: dict[str, Callable[[], torch.Tensor]] = {
    "sparse": lambda: torch.eye(3).to_sparse(),
    "empty sparse": lambda: torch.sparse_coo_tensor(size=(2, 2)),
    "compressed rows": lambda: sparse_compressed(torch.sparse_csr),
    "compressed columns": lambda: sparse_compressed(torch.sparse_csc),
    "blocks of rows": lambda: sparse_compressed(torch.sparse_bsr),
    "meta": lambda: torch.ones(3, device="meta"),
    "empty meta": lambda: torch.empty(0, device="meta"),
    "quantized": lambda: torch.quantize_per_tensor(torch.ones(3), 0.1, 0, torch.qint8),
    "quantized by channel": lambda: torch.quantize_per_channel(
        torch.ones(2, 3), torch.ones(2), torch.zeros(2), 0, torch.quint8
    ),
    "mkldnn": lambda: torch.ones(3, 3).to_mkldnn(),
    "nested": nested,
    "jagged": jagged,
    "fake": fake,
    "fake empty": fake_empty,
    "functional": functional,
    "wrapper subclass": two_tensor,
    "storage resized to nothing": resized_to_nothing,
    "storage resized under a view": view_resized_to_nothing,
}

ENTRIES: dict[str, Callable[[Any], Any]] = {
    "from_dlpack": bridge.from_dlpack,
    "copy": lambda t: bridge.from_dlpack(t, copy=True),
    "no copy": lambda t: bridge.from_dlpack(t, copy=False),
    "asarray": bridge.asarray,
    "to_numpy": bridge.to_numpy,
    "convert to at": lambda t: bridge.convert(t, "at"),
    "convert to caffe2": lambda t: bridge.convert(t, "caffe2"),
    "convert to numpy": lambda t: bridge.convert(t, "numpy"),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", REFUSED)
@isolated
def test_tensors_without_readable_memory_are_refused(name: str, entry: str) -> None:
    warnings.simplefilter("ignore")  # torch warns of deprecated quantization, beta layouts, ...
    t = REFUSED[name]()
    warnings.simplefilter("error")
    with pytest.raises(BufferError) as caught:
        ENTRIES[entry](t)
    assert str(caught.value)


@pytest.mark.parametrize("name", REFUSED)
@isolated
def test_to_torch_is_the_object_itself(name: str) -> None:
    """Nothing has to be read to hand a tensor to where it already is."""
    warnings.simplefilter("ignore")
    t = REFUSED[name]()
    warnings.simplefilter("error")
    assert bridge.to_torch(t) is t
    assert bridge.convert(t, "torch") is t


REQUIRING_GRAD: dict[str, Callable[[], torch.Tensor]] = {
    "leaf": lambda: torch.ones(3, requires_grad=True),
    "result": lambda: torch.ones(3, requires_grad=True) * 2,
    "view": lambda: torch.ones(3, 3, requires_grad=True)[1:],
    "parameter": lambda: torch.nn.Parameter(torch.ones(3)),
    "weight of a layer": lambda: torch.nn.Linear(2, 2).weight,
    "empty": lambda: torch.empty(0, requires_grad=True),
    "0-d": lambda: torch.tensor(1.0, requires_grad=True),
    "complex": lambda: torch.ones(2, dtype=torch.complex64, requires_grad=True).conj(),
}


@pytest.mark.parametrize("entry", ENTRIES)
@pytest.mark.parametrize("name", REQUIRING_GRAD)
def test_tensors_that_require_grad_are_refused(name: str, entry: str) -> None:
    t = REQUIRING_GRAD[name]()
    with pytest.raises(BufferError, match=r"detach\(\)"):
        ENTRIES[entry](t)
    assert bridge.to_torch(t) is t
    assert tuple(bridge.from_dlpack(t.detach()).sizes()) == tuple(t.shape)


def test_no_grad_does_not_admit_a_tensor_that_requires_grad() -> None:
    with torch.no_grad(), pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.from_dlpack(torch.ones(3, requires_grad=True))


def test_grad_asked_for_later_leaves_imported_memory_as_it_is() -> None:
    t = torch.ones(3)
    x = bridge.from_dlpack(t)
    t.requires_grad_()
    assert x.tolist() == [1, 1, 1]
    # x is memory, and no part of what torch differentiates.
    assert x.add(1).tolist() == [2, 2, 2]
    x.mul_(3)
    assert t.tolist() == [3, 3, 3]
    with pytest.raises(BufferError, match=r"detach\(\)"):
        bridge.from_dlpack(t)


@pytest.mark.parametrize("entry", ENTRIES)
@isolated
def test_tensors_under_vmap_are_refused(entry: str) -> None:
    def body(row: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError):
            ENTRIES[entry](row)
        return row

    torch.vmap(body)(torch.ones(2, 3))


@pytest.mark.parametrize("entry", ENTRIES)
@isolated
def test_tensors_under_grad_are_refused(entry: str) -> None:
    def body(t: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError):
            ENTRIES[entry](t)
        return t.sum()

    torch.func.grad(body)(torch.ones(3))


@pytest.mark.parametrize("entry", ENTRIES)
@isolated
def test_tensors_under_jvp_are_refused(entry: str) -> None:
    def body(t: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError):
            ENTRIES[entry](t)
        return t

    warnings.simplefilter("ignore")  # torch scripts its derivatives, and calls that deprecated
    torch.func.jvp(body, (torch.ones(3),), (torch.ones(3),))


@isolated
def test_tensors_under_functionalize_are_refused() -> None:
    def body(t: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError):
            bridge.from_dlpack(t)
        return t + 1

    torch.func.functionalize(body)(torch.ones(3))


@isolated
def test_fakes_of_tracing_are_refused() -> None:
    from torch.fx.experimental.proxy_tensor import make_fx

    def body(t: torch.Tensor) -> torch.Tensor:
        with pytest.raises(BufferError):
            bridge.from_dlpack(t)
        return t + 1

    make_fx(body, tracing_mode="fake")(torch.ones(3))


@isolated
def test_uninitialized_parameters_are_refused() -> None:
    warnings.simplefilter("ignore")  # torch calls its lazy modules a preview
    for t in (
        torch.nn.LazyLinear(3).weight,
        torch.nn.UninitializedParameter(requires_grad=False),
        torch.nn.UninitializedBuffer(),
    ):
        with pytest.raises(BufferError):
            bridge.from_dlpack(t)


@pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor])
@isolated
def test_the_refused_are_left_as_they_were(wrap: type) -> None:
    t = torch.ones(3, requires_grad=True)
    with pytest.raises((BufferError, TypeError)):
        wrap(t)
    assert t.requires_grad
    assert t.tolist() == [1, 1, 1]
    (t * 2).sum().backward()
    assert t.grad is not None
    assert t.grad.tolist() == [2, 2, 2]


@isolated
def test_duals_of_forward_mode_are_refused_or_give_their_primal() -> None:
    from torch.autograd import forward_ad

    warnings.simplefilter("ignore")  # torch scripts its derivatives, and calls that deprecated
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(torch.ones(3), torch.ones(3))
        try:
            x = bridge.from_dlpack(dual)
        except BufferError:
            return
        assert x.tolist() == [1, 1, 1]


@isolated
def test_views_of_freed_storages_are_refused_at_once() -> None:
    bridge.from_dlpack(torch.ones(2))  # the first tensor takes longer and is looked at closer
    for view in (torch.ones(64)[8:], torch.ones(64)[3:], torch.ones(8, 8).t()[1:]):
        view.untyped_storage().resize_(0)
        for entry in ENTRIES.values():
            with pytest.raises(BufferError, match="freed or resized"):
                entry(view)


@isolated
def test_tensors_of_which_the_collector_left_nothing_are_refused() -> None:
    for copy in (None, False, True):
        with pytest.raises(BufferError, match="undefined"):
            bridge.from_dlpack(undefined_tensor(), copy=copy)
