# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.optimizer``: adds the operators that train a model.

``build_sgd(model, 0.1)`` and the others, their classes, and weight decay. Follows
caffe2/python/optimizer.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import brew, model_helper, optimizer
>>> model = model_helper.ModelHelper(name="optimizer_doc")
>>> y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> gradients = model.AddGradientOperators([model.AveragedLoss(y, "loss")])
>>> sgd = optimizer.build_sgd(model, base_learning_rate=0.1)
>>> [op.type for op in model.net.Proto().op][-3:]
['LearningRate', 'WeightedSum', 'WeightedSum']
"""

from __future__ import annotations

from bridge.caffe2.optimizer.adagrad import AdagradOptimizer
from bridge.caffe2.optimizer.adam import AdamOptimizer
from bridge.caffe2.optimizer.adaptive import (
    AdadeltaOptimizer,
    StormOptimizer,
    WngradOptimizer,
    YellowFinOptimizer,
)
from bridge.caffe2.optimizer.builders import add_optimizer as _build
from bridge.caffe2.optimizer.builders import (
    add_weight_decay,
    build_adadelta,
    build_adagrad,
    build_adam,
    build_fp16_sgd,
    build_ftrl,
    build_gftrl,
    build_multi_precision_sgd,
    build_rms_prop,
    build_sgd,
    build_storm,
    build_wngrad,
    build_yellowfin,
)
from bridge.caffe2.optimizer.ftrl import FtrlOptimizer, GFtrlOptimizer
from bridge.caffe2.optimizer.gradient_descent import (
    RmsPropOptimizer,
    SgdOptimizer,
    WeightDecayBuilder,
)
from bridge.caffe2.optimizer.half_precision import FP16SgdOptimizer, MultiPrecisionSgdOptimizer
from bridge.caffe2.optimizer.learning_rates import (
    LEARNING_RATE_INJECTION as _LEARNING_RATE_INJECTION,
)
from bridge.caffe2.optimizer.learning_rates import devices_of_blobs as _get_param_to_device
from bridge.caffe2.optimizer.learning_rates import (
    get_lr_injection,
    get_param_device,
    set_lr_injection,
)
from bridge.caffe2.optimizer.learning_rates import norm_ratio as _calc_norm_ratio
from bridge.caffe2.optimizer.optimizer_base import FP16_ENGINES, AuxOptimizerParams, Optimizer
from bridge.caffe2.optimizer.optimizer_base import instance_counts as _optimizer_instance_count

__all__ = [
    "FP16_ENGINES",
    "_LEARNING_RATE_INJECTION",
    "_build",
    "_calc_norm_ratio",
    "_get_param_to_device",
    "_optimizer_instance_count",
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AuxOptimizerParams",
    "FP16SgdOptimizer",
    "FtrlOptimizer",
    "GFtrlOptimizer",
    "MultiPrecisionSgdOptimizer",
    "Optimizer",
    "RmsPropOptimizer",
    "SgdOptimizer",
    "StormOptimizer",
    "WeightDecayBuilder",
    "WngradOptimizer",
    "YellowFinOptimizer",
    "add_weight_decay",
    "build_adadelta",
    "build_adagrad",
    "build_adam",
    "build_fp16_sgd",
    "build_ftrl",
    "build_gftrl",
    "build_multi_precision_sgd",
    "build_rms_prop",
    "build_sgd",
    "build_storm",
    "build_wngrad",
    "build_yellowfin",
    "get_lr_injection",
    "get_param_device",
    "set_lr_injection",
]
