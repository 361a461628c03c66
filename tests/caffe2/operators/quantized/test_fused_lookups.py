# SPDX-License-Identifier: Apache-2.0
"""Look-ups in quantized tables: what the recorded cases of Caffe2 do not have."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace


@pytest.fixture(autouse=True)
def _own_workspace():
    workspace.ResetWorkspace()
    yield
    workspace.ResetWorkspace()


def run_thrice(kind: str, **feeds: np.ndarray) -> core.Net:
    """Return a net with the output y that has run thrice, at last by recorded calls."""
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    net = core.Net("look_ups")
    net.Proto().op.extend([core.CreateOperator(kind, list(feeds), ["y"])])
    workspace.CreateNet(net, overwrite=True)
    for _ in range(3):
        workspace.RunNet(net)
    return net


@pytest.mark.parametrize("bias", [0, 1e-7, -6e-8, 1.5, -65504, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("bits", [4, 2])
def test_scale_and_bias_may_be_any_float16(bits, bias) -> None:
    ends = np.array([2**-24, bias], np.float16)
    table = np.concatenate([np.array([0b11100100], np.uint8), ends.view(np.uint8)])[None]
    rows, lengths = np.array([0], np.int32), np.array([1], np.int32)
    run_thrice(f"SparseLengthsSumFused{bits}BitRowwise", q=table, i=rows, n=lengths)
    found = workspace.FetchBlob("y")
    numbers = np.array([[4, 14]] if bits == 4 else [[0, 1, 2, 3]], np.float32)
    np.testing.assert_array_equal(found, numbers * np.float32(ends[0]) + np.float32(ends[1]))


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"i": np.array([0, 9, 1])}, "out of range for 3 rows"),
        ({"i": np.array([0, -1, 1])}, "out of range for 3 rows"),
        ({"n": np.array([1, 1], np.int32)}, "add up to 2"),
        ({"n": np.array([4, -1], np.int32)}, "must not be negative"),
        ({"to": np.array([0, 5, -1], np.int32)}, "out of range for 2 rows"),
        ({"to": np.array([-2, 1, -1], np.int32)}, "out of range for 2 rows"),
        ({"to": np.zeros(0, np.int32)}, "out of range for 0 rows"),
    ],
)
def test_a_recorded_look_up_refuses_rows_that_are_not_there(changed, message) -> None:
    table = np.zeros((2, 12), np.uint8)
    feeds = {"q": table, "i": np.array([0, 2, 1]), "n": np.array([1, 2], np.int32)}
    feeds["to"] = np.array([0, 1, -1], np.int32)
    net = run_thrice("SparseLengthsSum8BitRowwiseSparse", **feeds)
    for name, value in changed.items():
        workspace.FeedBlob(name, value)
    with pytest.raises(EnforceNotMet, match=message):
        workspace.RunNet(net)


@pytest.mark.parametrize("bits", [2, 4, 8])
def test_lengths_of_int64_give_the_same_bits(bits: int) -> None:
    """NumPy 2 makes int64 of lengths where NumPy 1 did not, as in ones(int32) * int64."""
    random = np.random.default_rng(0)
    workspace.FeedBlob("x", random.random((9, 16), np.float32))
    quantize = f"FloatToFused{bits}BitRowwiseQuantized"
    workspace.RunOperatorOnce(core.CreateOperator(quantize, ["x"], ["q"]))
    feeds = {
        "q": workspace.FetchBlob("q"),
        "w": random.random(8, np.float32),
        "i": random.integers(0, 9, 8),
    }
    found = []
    for kind in (np.int32, np.int64):
        lengths = np.array([3, 0, 1, 4], kind)
        run_thrice(f"SparseLengthsWeightedSumFused{bits}BitRowwise", **feeds, n=lengths)
        found.append(workspace.FetchBlob("y").tobytes())
    assert found[0] == found[1]
    with pytest.raises(EnforceNotMet, match="add up to"):
        run_thrice(
            f"SparseLengthsWeightedSumFused{bits}BitRowwise", **feeds, n=np.array([2**32 + 8])
        )
