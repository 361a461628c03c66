# SPDX-License-Identifier: Apache-2.0
"""The routes, and a look at what came out of one that asks the library and not the package."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from bridge.caffe2 import workspace
from tests.exchange.matrix.case import (
    COPIED,
    SAME,
    SHARED,
    TENSORFLOW_COPIES,
    Case,
    expected,
    is_row_major,
)
from tests.helpers.dlpack_consumer import take_capsule

COPIES = (None, False, True)


@dataclasses.dataclass(frozen=True)
class Route:
    """A call that takes a source to a target; without `takes_copy` it may copy as it must."""

    name: str
    target: str
    call: Callable[..., Any]
    takes_copy: bool = True

    def __str__(self) -> str:
        return self.name


def _by_name(target: str) -> Callable[..., Any]:
    return lambda x, **options: bridge.convert(x, target, **options)


ROUTES = (
    Route("from_dlpack", "at", bridge.from_dlpack),
    Route("asarray", "at", bridge.asarray),
    Route("convert at", "at", _by_name("at")),
    Route("convert caffe2", "caffe2", _by_name("caffe2")),
    Route("to_torch", "torch", bridge.to_torch),
    Route("convert torch", "torch", _by_name("torch")),
    Route("to_numpy", "numpy", bridge.to_numpy),
    Route("convert numpy", "numpy", _by_name("numpy")),
    Route("to_jax", "jax", bridge.to_jax),
    Route("convert jax", "jax", _by_name("jax")),
    Route("to_tensorflow", "tensorflow", bridge.to_tensorflow),
    Route("convert tensorflow", "tensorflow", _by_name("tensorflow")),
)
OPTIONAL = ("jax", "tensorflow")


@dataclasses.dataclass(frozen=True)
class Seen:
    """A tensor as its own library shows it: `values` is a copy."""

    address: int
    values: np.ndarray[Any, Any]
    writable: bool


def look(out: Any, target: str) -> Seen:
    """What the library of a tensor says of it."""
    if target in ("at", "caffe2"):
        assert type(out) is (at.Tensor if target == "at" else caffe2.Tensor)
        array = out.numpy()
        return Seen(array.ctypes.data, array.copy(), array.flags.writeable)
    if target == "numpy":
        assert isinstance(out, np.ndarray)
        return Seen(out.ctypes.data, out.copy(), out.flags.writeable)
    if target == "torch":
        return _look_at_torch(out)
    if target == "jax":
        import jax

        assert isinstance(out, jax.Array)
        values = np.asarray(out)
        # Packed types have no address that could be compared.
        address = 0 if values.dtype.name.startswith(("int4", "uint4", "int2", "uint2")) else None
        return Seen(out.unsafe_buffer_pointer() if address is None else 0, values.copy(), False)
    import tensorflow as tf

    assert isinstance(out, tf.Tensor)
    address = 0
    if out.dtype.name not in TENSORFLOW_COPIES:
        taken = take_capsule(tf.experimental.dlpack.to_dlpack(out))
        address = taken.address
        taken.release()
    if out.dtype in (tf.float32, tf.int32, tf.float64):
        tf.add(out, out)  # TensorFlow aborts in operations on memory that it cannot work with
    return Seen(address, np.array(out.numpy()), False)


def _look_at_torch(out: Any) -> Seen:
    import ml_dtypes
    import torch

    assert isinstance(out, torch.Tensor)
    plain = out.detach().resolve_conj().resolve_neg().contiguous()
    name = str(out.dtype).partition(".")[2]
    raw = plain.reshape(-1).view(torch.uint8).numpy().copy()
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    return Seen(out.data_ptr(), raw.view(dtype).reshape(tuple(out.shape)), True)


def check_route(case: Case, route: Route) -> None:
    """Take fresh sources of a case along a route and compare with what the rules say."""
    if route.target in OPTIONAL:
        pytest.importorskip(route.target)
    for copy in COPIES:
        if case.text and route.name == "asarray" and copy is not False:
            assert route.call(case.make()).dtype().name == "string"
            continue
        try:
            _check(case, route, copy)
        except (AssertionError, pytest.fail.Exception) as error:
            raise AssertionError(f"{case} by {route} under copy={copy}: {error}") from error


def _check(case: Case, route: Route, copy: bool | None) -> None:
    source = case.make()
    options = {} if copy is None else {"copy": copy}
    want = expected(case, source, route.target, copy)
    if want.error is not None:
        with pytest.raises(want.error, match=want.match or None) as caught:
            route.call(source, **options)
        assert len(str(caught.value)) > 20, "an error says why and what to do"
        return
    if case.library == route.target and copy is True:
        if case.values is not None:  # else it is for its own library to say whether it can
            again = route.call(source, **options)
            assert again is not source
            if case.address is not None and case.values().size:
                assert look(again, route.target).address != case.address(source)
        return
    out = route.call(source, **options)
    if want.how == SAME:
        assert out is source
        return
    assert case.values is not None
    values = case.values()
    seen = look(out, route.target)
    assert seen.values.dtype == values.dtype
    assert seen.values.shape == values.shape
    assert seen.values.tobytes() == values.tobytes()
    if not values.size:
        return
    if want.how == SHARED:
        assert case.address is not None
        assert seen.address == case.address(source), "copied, and it could have been shared"
        assert not (case.readonly and seen.writable), "a writable alias of read-only memory"
    else:
        assert want.how == COPIED
        if case.address is not None:
            assert seen.address != case.address(source), "shared, where a copy was due"


def check_feed(case: Case) -> None:
    """Feed a source to a blob and fetch it; or have it refused, and the blob as it was."""
    from bridge import c10

    source = case.make()
    workspace.FeedBlob("fed", np.float32([1, 2]))
    shared = hasattr(type(source), "__dlpack__") or type(source).__name__ == "PyCapsule"
    if isinstance(source, bytes) or case.text:
        assert workspace.FeedBlob("fed", source) is True
        fetched = workspace.FetchBlob("fed")
        assert fetched.dtype == object if case.text else fetched == source
        return
    if case.values is None or (_scattered(case) and shared and case.library != "numpy"):
        with pytest.raises(c10.EnforceNotMet):
            workspace.FeedBlob("fed", source)
        assert workspace.FetchBlob("fed").tolist() == [1, 2]
        return
    values = case.values()
    assert workspace.FeedBlob("fed", source) is True
    fetched = workspace.FetchBlob("fed")
    assert fetched.dtype == values.dtype
    assert fetched.tobytes() == values.tobytes()
    if case.address is None or not case.readonly or not values.size:
        return
    # What Python can write must not be the read-only source.
    tensor = workspace.FetchTorch("fed") if not _not_in_torch(values) else None
    if tensor is not None and case.library != "torch":
        assert tensor.data_ptr() != case.address(source)


def _scattered(case: Case) -> bool:
    """Whether a source that is shared is not contiguous, which blobs are."""
    assert case.values is not None
    if case.address is None:  # it is copied
        return False
    return case.strides is not None and not is_row_major(case.strides, case.values().shape)


def _not_in_torch(values: np.ndarray[Any, Any]) -> bool:
    from tests.exchange.matrix.case import lacks

    return lacks("torch", values)
