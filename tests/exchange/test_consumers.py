# SPDX-License-Identifier: Apache-2.0
"""Consumers that ignore DLPack's read-only flag or negative strides get a copy, or an error."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, caffe2
from tests.helpers.isolate import isolated

TEXT = b"abcdefgh" * 8
both_wrappers = pytest.mark.parametrize("wrap", [at.Tensor, caffe2.Tensor], ids=["at", "caffe2"])


def paddle() -> Any:
    return pytest.importorskip("paddle", reason="paddle is not installed")


def tvm_ffi() -> Any:
    return pytest.importorskip("tvm_ffi", reason="tvm-ffi is not installed")


@both_wrappers
@isolated
def test_paddle_from_read_only_memory(wrap: type) -> None:
    library = paddle()
    x = wrap(bridge.from_dlpack(TEXT))
    with bridge.audit() as log:
        t = library.from_dlpack(x)
    assert [record.nbytes for record in log if record.copied] == [64]
    assert t.data_ptr() != at.Tensor(x).data_ptr()
    t[0] = 0
    assert TEXT == b"abcdefgh" * 8
    with pytest.raises(BufferError, match="Paddle"):
        library.from_dlpack(x, copy=False)
    with bridge.no_copy(), pytest.raises(BufferError, match="read-only"):
        library.from_dlpack(x)


@isolated
def test_paddle_gets_a_copy_of_negative_strides() -> None:
    library = paddle()
    source = np.arange(6.0)
    for backwards in (source[::-1], source.reshape(2, 3)[:, ::-1]):
        x = bridge.from_dlpack(backwards)
        assert library.from_dlpack(x).numpy().tolist() == backwards.tolist()
        with pytest.raises(BufferError, match="negative"):
            library.from_dlpack(x, copy=False)
    shared = bridge.from_dlpack(source)
    assert library.from_dlpack(shared).data_ptr() == source.ctypes.data


@both_wrappers
@isolated
def test_tvm_ffi_from_read_only_memory(wrap: type) -> None:
    library = tvm_ffi()
    x = wrap(bridge.from_dlpack(TEXT))
    with bridge.audit() as log:
        t = library.from_dlpack(x)
    assert [record.nbytes for record in log if record.copied] == [64]
    assert t.data_ptr() != at.Tensor(x).data_ptr()
    bridge.to_numpy(t)[0] = 0
    assert TEXT == b"abcdefgh" * 8
    with bridge.no_copy(), pytest.raises(BufferError, match="read-only"):
        library.from_dlpack(x)


@isolated
def test_tvm_ffi_shares_all_other_memory() -> None:
    library = tvm_ffi()
    source = np.arange(6.0)
    for array in (source, source[::-1], source[::2]):
        t = library.from_dlpack(bridge.from_dlpack(array))
        assert t.data_ptr() == array.ctypes.data
