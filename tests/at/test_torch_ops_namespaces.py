# SPDX-License-Identifier: Apache-2.0
"""`at.linalg`, `at.fft` and torch's other namespaces, and ATen's flat names."""

from __future__ import annotations

from typing import Any

import pytest
import torch

import bridge
from bridge import at

from .comparing import expect_result, pair

CALLS: dict[str, Any] = {
    "linalg.svdvals": lambda lib, x: lib.linalg.svdvals(x),
    "linalg.norm": lambda lib, x: lib.linalg.norm(x, ord=2, dim=(0, 1)),
    "fft.fft": lambda lib, x: lib.fft.fft(x),
    "fft.fftfreq": lambda lib, _: lib.fft.fftfreq(5),
    "special.erf": lambda lib, x: lib.special.erf(x),
    "masked.sum": lambda lib, x: lib.masked.sum(x, 1, mask=x > 2),
    "masked.softmax": lambda lib, x: lib.masked.softmax(x, 0, mask=x >= 0),
    "signal.windows.hann": lambda lib, _: lib.signal.windows.hann(5),
    "nn.functional.relu": lambda lib, x: lib.nn.functional.relu(x - 2),
    "nn.functional.layer_norm": lambda lib, x: lib.nn.functional.layer_norm(x, (3,)),
}


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_functions_of_torchs_namespaces_agree_with_torch(call: Any) -> None:
    ours, theirs = pair((2, 3))
    expect_result(call(at, ours), call(torch, theirs))


FLAT: dict[str, Any] = {
    "linalg_svdvals": lambda x: (at.linalg_svdvals(x), torch.linalg.svdvals),
    "fft_fft": lambda x: (at.fft_fft(x), torch.fft.fft),
    "special_erf": lambda x: (at.special_erf(x), torch.special.erf),
    "_softmax": lambda x: (at._softmax(x, 0, False), lambda t: torch.softmax(t, 0)),
    "slice": lambda x: (at.slice(x, 1, 0, 2), lambda t: t[:, :2]),
    "expand": lambda x: (at.expand(x, 2, 2, 3), lambda t: t.expand(2, 2, 3)),
    "__radd__": lambda x: (at.__radd__(x, 1), lambda t: 1 + t),
    "T": lambda x: (at.T(x), lambda t: t.T),
}


@pytest.mark.parametrize("call", FLAT.values(), ids=FLAT)
def test_flat_names_are_atens(call: Any) -> None:
    ours, theirs = pair((2, 3))
    found, expected = call(ours)
    expect_result(found, expected(theirs))


def test_functions_run_on_the_memory() -> None:
    x = at.ones(3, 3)
    assert at.nn.init.zeros_(x) is x
    assert x.sum().item() == 0
    out = at.empty(3)
    at.linalg.svdvals(at.eye(3), out=out)
    assert out.tolist() == [1, 1, 1]
    assert bridge.shares_memory(at.linalg.diagonal(x), x)
    fixed = bridge.from_dlpack(b"abc")
    with pytest.raises(RuntimeError, match="read-only"):
        at.nn.init.zeros_(fixed)


def test_named_results_have_their_names() -> None:
    found = at.linalg.svd(at.eye(2))
    assert isinstance(found.S, at.Tensor)
    assert at.linalg_svd(at.eye(2)).S.tolist() == [1, 1]


def test_new_elements_have_the_types_of_the_bridge() -> None:
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(torch.float64)
        assert at.fft.fftfreq(4).dtype == at.signal.windows.hann(4).dtype == "float32"
    finally:
        torch.set_default_dtype(default)


def test_a_namespace_lists_its_functions() -> None:
    assert {"svd", "norm"} <= set(dir(at.linalg))
    assert "functional" in dir(at.nn)
    assert at.linalg.svd.__name__ == "svd"
    assert at.linalg is at.linalg
    assert issubclass(at.linalg.LinAlgError, RuntimeError)


@pytest.mark.parametrize("name", ["no_such_function", "_hidden", "__wrapped__", "Tensor_"])
def test_names_that_torch_lacks_are_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match=name):
        getattr(at.linalg, name)
    with pytest.raises(AttributeError, match=name):
        getattr(at, name)


def test_every_operation_of_torchs_table_has_a_function() -> None:
    """Its names with a dot, but of ``torch.ops``, and ATen's; the jiterator is for CUDA alone."""
    pytest.importorskip("expecttest")
    from torch.testing._internal.common_methods_invocations import op_db

    def reachable(name: str) -> bool:
        place: Any = at
        for part in name.split("."):
            place = getattr(place, part, None)
        return callable(place)

    names = {op.name for op in op_db if not op.name.startswith(("torch.", "jiterator_"))}
    assert {name for name in names if not reachable(name)} <= {"_segment_reduce"}
