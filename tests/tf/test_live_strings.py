# SPDX-License-Identifier: Apache-2.0
"""Tensors of strings to and from the TensorFlow that is installed, which are copies."""

from typing import Any

import pytest

import bridge
from bridge import caffe2, tf

tensorflow = pytest.importorskip("tensorflow", reason="TensorFlow is not installed")


@pytest.mark.parametrize(
    "items", [b"a", [], [b"a", b"", b"\0b\xff"], [[b"x" * 100], [b"y"]]], ids=repr
)
def test_string_tensors_are_copied_both_ways(items: Any) -> None:
    theirs = tensorflow.constant(items, tensorflow.string)
    x = bridge.asarray(theirs)
    assert x.dtype().name == "string"
    assert tuple(x.sizes()) == tuple(theirs.shape)
    assert x.tolist() == items
    back = bridge.to_tensorflow(x)
    assert back.dtype == tensorflow.string
    assert back.shape == theirs.shape
    assert (back == theirs).numpy().all()
    assert (bridge.to_tensorflow(caffe2.Tensor(x)) == theirs).numpy().all()
    assert tf.make_tensor_proto(theirs) == tensorflow.make_tensor_proto(theirs).SerializeToString()
    assert bridge.from_dlpack(theirs).tolist() == items
    for take in (bridge.asarray, bridge.from_dlpack):
        with pytest.raises(BufferError, match="copied"):
            take(theirs, copy=False)
    with pytest.raises(BufferError):
        bridge.to_tensorflow(x, copy=False)
