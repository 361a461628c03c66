# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.model_helper``: ModelHelper and what it is used with."""

from __future__ import annotations

from bridge.caffe2.models.initializers import ExternalInitializer, Initializer
from bridge.caffe2.models.model_helper import ModelHelper
from bridge.caffe2.models.parameter_info import ParameterInfo, ParameterTags
from bridge.caffe2.nets.predictor_net import ExtractPredictorNet

__all__ = [
    "ExternalInitializer",
    "ExtractPredictorNet",
    "Initializer",
    "ModelHelper",
    "ParameterInfo",
    "ParameterTags",
]
