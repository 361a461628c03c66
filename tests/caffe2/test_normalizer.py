# SPDX-License-Identifier: Apache-2.0
"""What normalizes the outputs of layers."""

from unittest.mock import Mock

import pytest

from bridge.caffe2.normalizer import BatchNormalizer, LayerNormalizer, Normalizer


def test_the_method_of_the_model_is_called() -> None:
    model = Mock()
    assert BatchNormalizer(1, 2)(model, "x") is model.BatchNormalization.return_value
    model.BatchNormalization.assert_called_once_with("x", momentum=1.0, scale_init_value=2.0)
    LayerNormalizer(0.5, use_layer_norm_op=False)(model, "y")
    model.LayerNormalization.assert_called_once_with(
        "y", epsilon=0.5, use_layer_norm_op=False, scale_init_value=1.0
    )
    with pytest.raises(NotImplementedError):
        Normalizer()(model, "x")
