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

from bridge.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.optimizer.adagrad": "AdagradOptimizer",
        "bridge.caffe2.optimizer.adaptive": (
            "AdadeltaOptimizer AdamOptimizer FtrlOptimizer GFtrlOptimizer StormOptimizer "
            "WngradOptimizer YellowFinOptimizer"
        ),
        "bridge.caffe2.optimizer.builders": (
            "_build=add_optimizer add_weight_decay build_adadelta build_adagrad build_adam "
            "build_fp16_sgd build_ftrl build_gftrl build_multi_precision_sgd build_rms_prop "
            "build_sgd build_storm build_wngrad build_yellowfin"
        ),
        "bridge.caffe2.optimizer.gradient_descent": (
            "FP16SgdOptimizer MultiPrecisionSgdOptimizer RmsPropOptimizer SgdOptimizer "
            "WeightDecayBuilder"
        ),
        "bridge.caffe2.optimizer.learning_rates": (
            "_LEARNING_RATE_INJECTION=LEARNING_RATE_INJECTION _calc_norm_ratio=norm_ratio "
            "_get_param_to_device=devices_of_blobs get_lr_injection get_param_device "
            "set_lr_injection"
        ),
        "bridge.caffe2.optimizer.optimizer_base": (
            "AuxOptimizerParams FP16_ENGINES Optimizer _optimizer_instance_count=instance_counts"
        ),
    },
)
