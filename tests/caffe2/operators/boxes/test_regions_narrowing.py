# SPDX-License-Identifier: Apache-2.0
"""SampleAs and SpatialNarrowAs, which Caffe2 computes on CUDA only."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")


def run_with_gradient(op_type: str, x: np.ndarray, other: np.ndarray) -> tuple[np.ndarray, ...]:
    workspace.FeedBlob("x", x)
    workspace.FeedBlob("other", other)
    net = core.Net("parts")
    net.Proto().op.extend([core.CreateOperator(op_type, ["x", "other"], ["y"])])
    workspace.RunNetOnce(net)
    made = workspace.FetchBlob("y")
    if x.dtype != np.float32:
        return (made,)
    workspace.FeedBlob("dy", np.arange(1, made.size + 1, dtype=np.float32).reshape(made.shape))
    gradient = str(net.AddGradientOperators({"y": "dy"})["x"])
    workspace.RunNetOnce(net)
    return made, workspace.FetchBlob(gradient)


def test_sample_as_takes_rows_with_positive_labels() -> None:
    x = np.arange(24, dtype=np.float32).reshape(4, 2, 3)
    made, gradient = run_with_gradient("SampleAs", x, np.int32([2, 0, -1, 1]))
    np.testing.assert_array_equal(made, x[[0, 3]])
    np.testing.assert_array_equal(gradient[[0, 3]].reshape(-1), np.arange(1, 13))
    assert not gradient[1:3].any()
    with pytest.raises(RuntimeError, match="a label is positive"):
        run_with_gradient("SampleAs", x, np.int32([0, 0, -1, 0]))
    with pytest.raises(RuntimeError, match="one label per row"):
        run_with_gradient("SampleAs", x, np.int32([1, 0]))


@pytest.mark.parametrize("sizes", [(2, 3, 2, 4), (2, 2, 4)])
@pytest.mark.parametrize("kind", [np.float32, np.int32])
def test_spatial_narrow_as_takes_the_upper_left_part(sizes: tuple[int, ...], kind: type) -> None:
    x = np.arange(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype(kind)
    made, *gradient = run_with_gradient("SpatialNarrowAs", x, np.zeros(sizes, np.float32))
    np.testing.assert_array_equal(made, x[:, :, :2, :4])
    for one in gradient:
        np.testing.assert_array_equal(one[:, :, :2, :4].reshape(-1), np.arange(1, 49))
        assert one.sum() == np.arange(1, 49).sum()


@pytest.mark.parametrize("sizes", [(2, 3, 5, 4), (1, 3, 2, 2), (2, 2, 2, 2), (2, 3)])
def test_parts_that_do_not_fit_are_refused(sizes: tuple[int, ...]) -> None:
    with pytest.raises(RuntimeError, match="The operator requires that"):
        run_with_gradient("SpatialNarrowAs", np.zeros((2, 3, 4, 5), np.float32), np.zeros(sizes))
