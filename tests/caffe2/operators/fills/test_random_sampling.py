# SPDX-License-Identifier: Apache-2.0
"""What is drawn by chance: how often, and the same again from the same seed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def drawn(op_type: str, *inputs: Any, outputs: int = 1, seed: int = 7, **args: Any) -> list[Any]:
    for i, value in enumerate(inputs):
        workspace.FeedBlob(f"x{i}", value)
    option = core.DeviceOption(0, random_seed=seed)
    names = [f"y{i}" for i in range(outputs)]
    ins = [f"x{i}" for i in range(len(inputs))]
    workspace.RunOperatorOnce(
        core.CreateOperator(op_type, ins, names, device_option=option, **args)
    )
    return list(workspace.FetchBlobs(names))


def check_shares(places: np.ndarray, shares: list[float]) -> None:
    found = np.bincount(places.reshape(-1), minlength=len(shares)) / places.size
    np.testing.assert_allclose(found, shares, atol=0.03)


def test_weighted_sample_draws_by_weight() -> None:
    weights = np.tile(np.array([1, 0, 3, 4], np.float32), (4000, 1))
    values = np.arange(16000, dtype=np.float32).reshape(4000, 4)
    places, chosen = drawn("WeightedSample", weights, values, outputs=2)
    check_shares(places, [0.125, 0, 0.375, 0.5])
    np.testing.assert_array_equal(chosen, np.take_along_axis(values, places, 1))
    again, _ = drawn("WeightedSample", weights, values, outputs=2)
    np.testing.assert_array_equal(places, again)
    other, _ = drawn("WeightedSample", weights, values, outputs=2, seed=8)
    assert (places != other).any()


def test_weighted_multi_sampling_draws_by_the_sums_of_weights() -> None:
    sums = np.array([1, 1, 4, 8], np.float32)
    (places,) = drawn("WeightedMultiSampling", sums, num_samples=4000)
    check_shares(places, [0.125, 0, 0.375, 0.5])
    assert places.dtype == np.int32


def test_dropout_takes_whole_segments() -> None:
    x, lengths = np.arange(1, 12001), np.full(4000, 3, np.int32)
    kept, new = drawn("SparseDropoutWithReplacement", x, lengths, outputs=2, ratio=0.25)
    check_shares(new, [0, 0.25, 0, 0.75])
    assert len(kept) == new.sum()
    starts = np.cumsum(new) - new
    assert (kept[starts[new == 1]] == 0).all()
    np.testing.assert_array_equal(kept[starts[new == 3]], x[::3][new == 3])


def test_rounding_by_chance_is_right_in_the_mean() -> None:
    x = np.tile(np.array([0, 1.25, 3], np.float32), (4000, 1))
    (rows,) = drawn("FloatToFusedRandRowwiseQuantized", x, bitwidth=2)
    workspace.FeedBlob("rows", rows)
    workspace.RunOperatorOnce(
        core.CreateOperator("FusedRandRowwiseQuantizedToFloat", ["rows"], ["back"])
    )
    back = workspace.FetchBlob("back")
    assert set(back[:, 1].round(3)) == {1, 2}
    assert abs(back[:, 1].mean() - 1.25) < 0.03


def test_coalesced_blobs_share_memory() -> None:
    for name, value in (("a", [1, 2]), ("b", [[3], [4]])):
        workspace.FeedBlob(name, np.array(value, np.float32))
    operator = core.CreateOperator("UnsafeCoalesce", ["a", "b"], ["a", "b", "all"])
    workspace.RunOperatorOnce(operator)
    workspace.FeedBlob("all", np.array([5, 6, 7, 8], np.float32))
    assert workspace.FetchBlob("a").tolist() == [5, 6]
    assert workspace.FetchBlob("b").tolist() == [[7], [8]]
    address = workspace.FetchTorch("a").data_ptr()
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchTorch("a").data_ptr() == address
    assert workspace.FetchBlob("all").tolist() == [5, 6, 7, 8]


def test_a_coalesced_blob_that_grows_has_memory_of_its_own() -> None:
    for name in "ab":
        workspace.FeedBlob(name, np.array([1, 2], np.float32))
    operator = core.CreateOperator("UnsafeCoalesce", ["a", "b"], ["a", "b", "all"])
    workspace.RunOperatorOnce(operator)
    workspace.FeedBlob("a", np.array([5, 6, 7, 8], np.float32))
    assert workspace.FetchBlob("b").tolist() == [1, 2]
    assert workspace.FetchBlob("all").tolist() == [1, 2, 1, 2]
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("all").tolist() == [5, 6, 7, 8, 1, 2]
    workspace.FetchTorch("all").fill_(3)
    assert workspace.FetchBlob("a").tolist() == [3] * 4
    workspace.FeedBlob("b", np.array([4], np.float32))
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("all").tolist() == [3, 3, 3, 3, 4]


def test_memory_that_is_shared_in_another_place_is_not_coalesced() -> None:
    for name in "ab":
        workspace.FeedBlob(name, np.array([1, 2], np.float32))
    workspace.RunOperatorOnce(core.CreateOperator("UnsafeCoalesce", ["a", "b"], ["a", "b", "all"]))
    with pytest.raises(c10.EnforceNotMet, match="in another place"):
        workspace.RunOperatorOnce(
            core.CreateOperator("UnsafeCoalesce", ["b", "a"], ["b", "a", "all"])
        )
    assert workspace.FetchBlob("all").tolist() == [1, 2, 1, 2]
