# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2.optimizer.adagrad import AdagradOptimizer as AdagradOptimizer
from bridge.caffe2.optimizer.adaptive import AdadeltaOptimizer as AdadeltaOptimizer
from bridge.caffe2.optimizer.adaptive import AdamOptimizer as AdamOptimizer
from bridge.caffe2.optimizer.adaptive import FtrlOptimizer as FtrlOptimizer
from bridge.caffe2.optimizer.adaptive import GFtrlOptimizer as GFtrlOptimizer
from bridge.caffe2.optimizer.adaptive import StormOptimizer as StormOptimizer
from bridge.caffe2.optimizer.adaptive import WngradOptimizer as WngradOptimizer
from bridge.caffe2.optimizer.adaptive import YellowFinOptimizer as YellowFinOptimizer
from bridge.caffe2.optimizer.builders import add_weight_decay as add_weight_decay
from bridge.caffe2.optimizer.builders import build_adadelta as build_adadelta
from bridge.caffe2.optimizer.builders import build_adagrad as build_adagrad
from bridge.caffe2.optimizer.builders import build_adam as build_adam
from bridge.caffe2.optimizer.builders import build_fp16_sgd as build_fp16_sgd
from bridge.caffe2.optimizer.builders import build_ftrl as build_ftrl
from bridge.caffe2.optimizer.builders import build_gftrl as build_gftrl
from bridge.caffe2.optimizer.builders import build_multi_precision_sgd as build_multi_precision_sgd
from bridge.caffe2.optimizer.builders import build_rms_prop as build_rms_prop
from bridge.caffe2.optimizer.builders import build_sgd as build_sgd
from bridge.caffe2.optimizer.builders import build_storm as build_storm
from bridge.caffe2.optimizer.builders import build_wngrad as build_wngrad
from bridge.caffe2.optimizer.builders import build_yellowfin as build_yellowfin
from bridge.caffe2.optimizer.gradient_descent import FP16SgdOptimizer as FP16SgdOptimizer
from bridge.caffe2.optimizer.gradient_descent import (
    MultiPrecisionSgdOptimizer as MultiPrecisionSgdOptimizer,
)
from bridge.caffe2.optimizer.gradient_descent import RmsPropOptimizer as RmsPropOptimizer
from bridge.caffe2.optimizer.gradient_descent import SgdOptimizer as SgdOptimizer
from bridge.caffe2.optimizer.gradient_descent import WeightDecayBuilder as WeightDecayBuilder
from bridge.caffe2.optimizer.learning_rates import get_lr_injection as get_lr_injection
from bridge.caffe2.optimizer.learning_rates import get_param_device as get_param_device
from bridge.caffe2.optimizer.learning_rates import set_lr_injection as set_lr_injection
from bridge.caffe2.optimizer.optimizer_base import FP16_ENGINES as FP16_ENGINES
from bridge.caffe2.optimizer.optimizer_base import AuxOptimizerParams as AuxOptimizerParams
from bridge.caffe2.optimizer.optimizer_base import Optimizer as Optimizer

__all__ = [
    "AdadeltaOptimizer",
    "AdagradOptimizer",
    "AdamOptimizer",
    "AuxOptimizerParams",
    "FP16SgdOptimizer",
    "FP16_ENGINES",
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
