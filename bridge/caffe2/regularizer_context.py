# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.regularizer_context``."""

from __future__ import annotations

from bridge.caffe2.models.modifiers import (
    RegularizerContext,
    UseRegularizer,
)

__all__ = [
    "RegularizerContext",
    "UseRegularizer",
]
