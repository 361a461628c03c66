# SPDX-License-Identifier: Apache-2.0
"""Tensors of ONNX become operators that make them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import workspace
from bridge.caffe2.c_extension import Caffe2Backend
from bridge.caffe2.legacy.onnx_node import filling
from bridge.caffe2.proto import caffe2_pb2

onnx = pytest.importorskip("onnx")

from onnx import numpy_helper  # noqa: E402


@pytest.mark.parametrize(
    ("element", "made"),
    [
        (np.float32, np.float32),
        (np.float64, np.float64),
        (np.bool_, np.bool_),
        (np.int8, np.int32),
        (np.uint16, np.int32),
        (np.int64, np.int64),
        (np.uint32, np.int64),
    ],
)
def test_a_tensor_is_made(element: Any, made: Any) -> None:
    value = np.array([[0, 1], [3, 4]]).astype(element)
    tensor = numpy_helper.from_array(value, "tensor")
    workspace.RunOperatorOnce(filling(tensor))
    found = workspace.FetchBlob("tensor")
    np.testing.assert_array_equal(found, value)
    assert found.dtype == made
    built = Caffe2Backend()._build_tensor_filling_op(tensor.SerializeToString(), "other")
    assert list(caffe2_pb2.OperatorDef.FromString(built).output) == ["other"]


def test_texts_are_made() -> None:
    workspace.RunOperatorOnce(filling(numpy_helper.from_array(np.array(["a", "b"], object)), "s"))
    assert workspace.FetchBlob("s").tolist() == [b"a", b"b"]


def test_a_type_that_caffe2_has_not_is_refused() -> None:
    with pytest.raises(EnforceNotMet, match="unrecognized tensor type: 10"):
        filling(numpy_helper.from_array(np.ones(2, np.float16), "half"))
