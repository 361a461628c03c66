# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.normalizer_context``."""

from __future__ import annotations

from bridge.caffe2.models.modifiers import (
    NormalizerContext,
    UseNormalizer,
)

__all__ = [
    "NormalizerContext",
    "UseNormalizer",
]
