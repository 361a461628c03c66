# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modeling.parameter_sharing``."""

from __future__ import annotations

from bridge.caffe2.models.parameter_sharing import (
    ParameterSharing,
    ParameterSharingContext,
    parameter_sharing_context,
)

__all__ = [
    "ParameterSharing",
    "ParameterSharingContext",
    "parameter_sharing_context",
]
