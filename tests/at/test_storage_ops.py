# SPDX-License-Identifier: Apache-2.0
"""What is shared stays so in copies: deepcopy and torch.save."""

from __future__ import annotations

import copy
import io
import pickle

import numpy as np
import pytest
import torch

import bridge
from bridge import at, caffe2


def saved(value, **options):
    file = io.BytesIO()
    torch.save(value, file)
    file.seek(0)
    return torch.load(file, **options)


def owned():
    return at.arange(6.0)


def of_torch():
    return bridge.from_dlpack(torch.arange(8.0)[2:])


def of_numpy():
    return bridge.from_dlpack(np.arange(6.0))


@pytest.mark.parametrize("copied", [copy.deepcopy, saved])
@pytest.mark.parametrize("source", [owned, of_torch, of_numpy])
def test_copies_share_memory_where_their_originals_do(source, copied) -> None:
    x = source()
    before = x.tolist()
    # (torch.save refuses views of several types)
    last = x.view("int32") if copied is copy.deepcopy else x.view(3, 2)
    group = {"a": x, "b": x[1:], "c": [x.view(2, 3).t(), last], "alone": at.ones(2)}
    out = copied(group)
    a, b = out["a"], out["b"]
    assert (a.tolist(), b.tolist()) == (before, before[1:])
    assert out["c"][0].tolist() == x.view(2, 3).t().tolist()
    a[1] = 77
    assert b[0].item() == out["c"][0][1, 0].item() == 77
    assert bridge.shares_memory(a, out["c"][1])
    assert not bridge.shares_memory(a, out["alone"])
    assert x.tolist() == before
    assert not bridge.shares_memory(a, x)


@pytest.mark.parametrize("copied", [copy.deepcopy, saved])
def test_a_copy_of_a_torch_tensor_beside_shares_too(copied) -> None:
    t = torch.arange(6.0)
    a, b, c = copied([t, bridge.from_dlpack(t)[2:], bridge.from_dlpack(t[1:])])
    a[2] = -1
    assert b[0].item() == c[1].item() == -1
    assert isinstance(b, at.Tensor)


def test_a_file_has_shared_memory_once() -> None:
    x = at.zeros(100_000)
    file = io.BytesIO()
    torch.save([x, x[1:], x.view(10, -1)], file)
    assert len(file.getvalue()) < 500_000


def test_copies_of_read_only_memory_are_writable() -> None:
    x = bridge.from_dlpack(b"abcdef")
    assert copy.deepcopy(x).fill_(1).tolist() == saved(x).fill_(1).tolist() == [1] * 6
    assert bytes(x) == b"abcdef"


def test_negative_strides_are_copied_as_they_are() -> None:
    x = at.arange(6)[::-2]
    assert copy.deepcopy(x).tolist() == saved(x).tolist() == [5, 3, 1]


def test_a_pickle_has_the_elements_of_a_view_alone() -> None:
    x = at.zeros(100_000)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        data = pickle.dumps(x[:10], protocol)
        assert len(data) < 1000
        assert pickle.loads(data).tolist() == [0] * 10


def test_a_saved_caffe2_tensor_can_be_resized() -> None:
    t = caffe2.Tensor([2, 3], [1.0, 2, 3, 4, 5, 6])
    out = saved(t)
    assert isinstance(out, caffe2.Tensor)
    out.Resize(100)
    out.mutable_data("float64")[:] = 1
    assert out.numel() == 100


def test_a_saved_tensor_can_grow() -> None:
    assert saved(at.ones(3)).resize_(10).sizes() == (10,)
    assert copy.deepcopy(at.ones(3)).resize_(10).sizes() == (10,)
