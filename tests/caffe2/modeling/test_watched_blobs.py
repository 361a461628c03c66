# SPDX-License-Identifier: Apache-2.0
"""Operators that watch blobs: their results, and the fields of the output record."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.caffe2 import brew, model_helper, workspace
from bridge.caffe2.modeling.watched_blobs import (
    ComputeHistogramForBlobs,
    ComputeNormForBlobs,
    ComputeStatisticsForBlobs,
    GetEntryFromBlobs,
)
from bridge.caffe2.proto import caffe2_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.usefixtures("fresh_workspace")

W = np.array([[0.1, -0.4, 0.7], [0.9, 0.2, 0.3]], np.float32)


def watched(modifier: Any, **arguments: Any) -> Any:
    """Run a model twice whose filter is W, after `modifier` changed it; return its net."""
    model = model_helper.ModelHelper(name="watched")
    brew.fc(model, "x", "y", dim_in=3, dim_out=2)
    modifier(model.net, **arguments)
    workspace.RunNetOnce(model.param_init_net)
    workspace.FeedBlob("x", np.ones((4, 3), np.float32))
    workspace.FeedBlob("y_w", W)
    workspace.CreateNet(model.net)
    workspace.RunNet(model.net, 2)
    return model.net


@pytest.mark.parametrize(
    ("modifier", "name", "expected"),
    [
        (ComputeNormForBlobs(["y_w"], 0), "y_w_l2_norm", [(W**2).sum()]),
        (ComputeNormForBlobs(["y_w"], 0, 1), "y_w_l1_norm", [abs(W).sum()]),
        (
            ComputeNormForBlobs(["y_w"], 0, compute_averaged_norm=True, row_index=1),
            "y_w_row_1_averaged_l2_norm",
            [(W[1] ** 2).mean()],
        ),
        (
            ComputeHistogramForBlobs(["y_w"], 0, num_buckets=2),
            "y_w_curr_normalized_hist",
            np.array([1, 3, 2, 0]) / 6,
        ),
        (
            ComputeHistogramForBlobs(["y_w"], 0, 2, -1.0, 0.5, accumulate=True),
            "y_w_acc_normalized_hist",
            np.array([0, 1, 3, 2]) / 6,
        ),
        (
            ComputeStatisticsForBlobs(["y_w"], 0),
            "y_w_summary",
            [W.min(), W.max(), W.mean(), W.std(ddof=1)],
        ),
        (GetEntryFromBlobs(["y_w"], 0, 1, 2), "y_w_1_2", [[W[1, 2]]]),
        (GetEntryFromBlobs(["y_w"], 0, 1, -1), "y_w_1_all", [W[1]]),
    ],
)
def test_a_watched_blob_has_its_value_and_a_field(modifier: Any, name: str, expected: Any) -> None:
    net = watched(modifier, modify_output_record=True)
    np.testing.assert_allclose(workspace.FetchBlob(name), expected, rtol=1e-5)
    (field,) = net.output_record().field_names()
    assert field == name
    assert field.endswith(modifier.field_name_suffix())
    assert "Print" not in {operator.type for operator in net.Proto().op}


def test_norms_are_on_the_cpu_or_the_device_of_the_blob() -> None:
    model = model_helper.ModelHelper(name="devices")
    brew.fc(model, "x", "y", dim_in=3, dim_out=2)
    option = caffe2_pb2.DeviceOption(device_type=caffe2_pb2.IDEEP)
    ComputeNormForBlobs(["y_w", "y_b"], 5)(model.net, blob_to_device={"y_w": option})
    places = [(op.type, op.device_option.device_type) for op in model.net.Proto().op[1:]]
    types = ["Cast", "LpNorm", "StopGradient", "Print"]
    assert places == [(one, kind) for kind in (caffe2_pb2.IDEEP, 0) for one in types]
    assert model.net.output_record() is None


def test_what_cannot_be_watched_is_refused() -> None:
    with pytest.raises(AssertionError, match="no blob 'nowhere'"):
        watched(ComputeStatisticsForBlobs(["nowhere"], 1))
    with pytest.raises(ValueError, match="not negative, as -1 is"):
        watched(GetEntryFromBlobs(["y_w"], 1, -1))
    with pytest.raises(RuntimeError, match="not negative, as -2 is"):
        ComputeNormForBlobs(["y_w"], 1, row_index=-2)
    with pytest.raises(AssertionError, match="greater than 0, got 0"):
        ComputeHistogramForBlobs(["y_w"], 1, num_buckets=0)
