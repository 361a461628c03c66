# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` for training: input from a database, iterations, weight decay.

Follows caffe2/python/helpers/train.py and db_input.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.brew.helpers import helper
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.definitions.scope import CurrentNameScope
from bridge.caffe2.modeling import model_helper
from bridge.caffe2.modeling.model_helper import ModelHelper


@helper
def iter(model: ModelHelper, blob_out: Any, **kwargs: Any) -> Any:
    """Add a counter of the runs of the net, an int64 on the CPU that starts at 0."""
    kwargs.pop("device_option", None)
    model.param_init_net.ConstantFill(
        [],
        blob_out,
        shape=[1],
        value=0,
        dtype=DataType.INT64,
        device_option=DeviceOption(0, 0),
        **kwargs,
    )
    return model.net.Iter(blob_out, blob_out, **kwargs)


@helper
def add_weight_decay(model: ModelHelper, weight_decay: float) -> None:
    """Add `weight_decay` times each weight of the current name scope to its gradient.

    Raises EnforceNotMet, also a KeyError: a weight has no gradient.
    """
    if weight_decay <= 0.0:
        return
    decay = model.param_init_net.ConstantFill([], "wd", shape=[1], value=weight_decay)
    one = model.param_init_net.ConstantFill([], "ONE", shape=[1], value=1.0)
    scope = CurrentNameScope()
    for weight in model.weights:
        if not scope or weight.GetNameScope() == scope:
            gradient = model.param_to_grad.get(weight)
            if gradient is None:
                raise EnforceKeyError(
                    f"Weight {str(weight)!r} has no gradient; call model.AddGradientOperators "
                    "first.",
                    "brew.add_weight_decay",
                )
            model.net.WeightedSum([gradient, one, weight, decay], gradient)


db_input = helper(model_helper.db_input)
