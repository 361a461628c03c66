# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modeling.initializers``: classes that create parameters."""

from __future__ import annotations

from bridge.caffe2.models.initializers import (
    ExternalInitializer,
    Initializer,
    PseudoFP16Initializer,
    ReversePseudoFP16Initializer,
    update_initializer,
)

__all__ = [
    "ExternalInitializer",
    "Initializer",
    "PseudoFP16Initializer",
    "ReversePseudoFP16Initializer",
    "update_initializer",
]
