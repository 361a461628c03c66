# SPDX-License-Identifier: Apache-2.0
"""Operations of reversed tensors: torch has no negative strides, so it never sees their memory.

Each is right, as if torch could, or refused; none leaves wrong values behind.
"""

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at
from tests.helpers.isolate import isolated

from .comparing import expect_result, pair

REFUSALS = (RuntimeError, BufferError)


def test_functions_read_reversed_tensors() -> None:
    ours, theirs = pair((6,))
    expect_result(ours[::-1] + 1, theirs.flip(0) + 1)
    expect_result(torch.add(ours[::-1], theirs), theirs.flip(0) + theirs)
    expect_result(at.cumsum(ours[::-2], 0), theirs.flip(0)[::2].cumsum(0))
    expect_result(ours[::-1].unsqueeze(0).matmul(ours), theirs.flip(0).unsqueeze(0).matmul(theirs))
    assert torch.equal(theirs, pair((6,))[1])


# Each writes into x, v or both, where v is x[::-1]; NumPy says what must come of it.
WRITES: dict[str, tuple[Callable[[Any, Any], Any], Callable[[Any], Any]]] = {
    "v.add_": (lambda x, v: v.add_(1), lambda a: a + 1),
    "v.add_ other": (lambda x, v: v.add_(at.arange(6)), lambda a: a + np.arange(6)[::-1]),
    "v.add_(x)": (lambda x, v: v.add_(x), lambda a: a + a[::-1]),
    "x.add_(v)": (lambda x, v: x.add_(v), lambda a: a + a[::-1]),
    "x.mul_(v)": (lambda x, v: x.mul_(v), lambda a: a * a[::-1]),
    "x += v": (lambda x, v: x.__iadd__(v), lambda a: a + a[::-1]),
    "out=v": (lambda x, v: torch.add(v, 1, out=v), lambda a: a + 1),
    "out=x": (lambda x, v: torch.add(x, v, out=x), lambda a: a + a[::-1]),
    "at out=x": (lambda x, v: at.mul(v, v, out=x), lambda a: (a * a)[::-1]),
    "inplace flag": (lambda x, v: torch.nn.functional.relu(v, inplace=True), lambda a: a.clip(0)),
    "exp_": (lambda x, v: v.exp_(), np.exp),
    "relu_": (lambda x, v: torch.relu_(v), lambda a: a.clip(0)),
    "copy_": (lambda x, v: x.copy_(v), lambda a: a[::-1]),
}


@pytest.mark.parametrize(("write", "expected"), WRITES.values(), ids=WRITES)
def test_writes_are_right_or_refused(
    write: Callable[[Any, Any], Any], expected: Callable[[Any], Any]
) -> None:
    before = np.arange(6, dtype=np.float32) - 2
    array = before.copy()
    tensor = bridge.from_dlpack(array)
    after = expected(before)
    try:
        result = write(tensor, tensor[::-1])
    except REFUSALS:
        np.testing.assert_array_equal(array, before)
        return
    np.testing.assert_allclose(array, after, rtol=1e-6)
    assert sorted(result.tolist()) == sorted(array.tolist())


@isolated
def test_reading_a_read_only_map_never_writes_to_it(tmp_path: Path) -> None:
    """The pages are protected: a write, be it of the bytes that are there, ends the process."""
    path = tmp_path / "values"
    path.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    tensor = bridge.from_dlpack(np.frombuffer(mapped, dtype=np.float32))
    assert tensor.readonly
    for source in [tensor, tensor[::-1]]:
        expected = source.numpy() + 1
        target = at.ones((6,))
        assert target.add_(source).tolist() == expected.tolist()
        assert torch.add(at.ones((6,)), source, out=target).tolist() == expected.tolist()
        assert source.add(1).tolist() == expected.tolist()
        for write in [source.zero_, lambda x=source: x.add_(1), lambda x=source: x.exp_()]:
            with pytest.raises(RuntimeError):
                write()
