# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.model_helper``: ModelHelper and its parameters.

>>> from bridge.caffe2 import model_helper
>>> model = model_helper.ModelHelper(name="facade_doc")
>>> model.create_param("w", [2, 3], model_helper.Initializer("GaussianFill", std=0.1))
BlobReference("w")
"""

from __future__ import annotations

from bridge.caffe2.models.brew_training import db_input
from bridge.caffe2.models.initializers import ExternalInitializer, Initializer
from bridge.caffe2.models.model_helper import ModelHelper
from bridge.caffe2.models.modifiers import DEFAULT_MODIFIER as DEFAULT_OPTIM
from bridge.caffe2.models.modifiers import OptimizerContext, RegularizerContext
from bridge.caffe2.models.parameter_info import ParameterInfo, ParameterTags
from bridge.caffe2.models.parameter_sharing import parameter_sharing_context
from bridge.caffe2.nets.predictor_net import ExtractPredictorNet

__all__ = [
    "DEFAULT_OPTIM",
    "ExternalInitializer",
    "ExtractPredictorNet",
    "Initializer",
    "ModelHelper",
    "OptimizerContext",
    "ParameterInfo",
    "ParameterTags",
    "RegularizerContext",
    "db_input",
    "parameter_sharing_context",
]
