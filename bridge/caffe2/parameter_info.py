# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modeling.parameter_info``: the parameters of models."""

from __future__ import annotations

from bridge.caffe2.models.parameter_info import ParameterInfo, ParameterTags

__all__ = ["ParameterInfo", "ParameterTags"]
