# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.optimizer``: adds the operators that train a model.

The part that scripts call: ``build_sgd(model, 0.1)`` and the others, and weight decay. Options that
are not supported (LARS, row-wise and deduplicated sparse gradients, injected rates) raise
EnforceNotMet. Follows caffe2/python/optimizer.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import brew, model_helper, optimizer
>>> model = model_helper.ModelHelper(name="optimizer_doc")
>>> y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> gradients = model.AddGradientOperators([model.AveragedLoss(y, "loss")])
>>> sgd = optimizer.build_sgd(model, base_learning_rate=0.1)
>>> [op.type for op in model.net.Proto().op][-3:]
['LearningRate', 'WeightedSum', 'WeightedSum']
"""

from __future__ import annotations

from bridge.caffe2.models.optimizer_adaptive import (
    AdadeltaOptimizer,
    AdagradOptimizer,
    AdamOptimizer,
    StormOptimizer,
    WngradOptimizer,
)
from bridge.caffe2.models.optimizer_base import AuxOptimizerParams, Optimizer
from bridge.caffe2.models.optimizer_builders import (
    add_weight_decay,
    build_adadelta,
    build_adagrad,
    build_adam,
    build_rms_prop,
    build_sgd,
    build_storm,
    build_wngrad,
)
from bridge.caffe2.models.optimizer_devices import FP16_ENGINES, get_param_device
from bridge.caffe2.models.optimizer_gradient_descent import (
    RmsPropOptimizer,
    SgdOptimizer,
    WeightDecayBuilder,
)

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AuxOptimizerParams",
    "FP16_ENGINES",
    "Optimizer",
    "RmsPropOptimizer",
    "SgdOptimizer",
    "StormOptimizer",
    "WeightDecayBuilder",
    "WngradOptimizer",
    "add_weight_decay",
    "build_adadelta",
    "build_adagrad",
    "build_adam",
    "build_rms_prop",
    "build_sgd",
    "build_storm",
    "build_wngrad",
    "get_param_device",
]
