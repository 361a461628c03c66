# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.modifier_context``."""

from __future__ import annotations

from bridge.caffe2.models.modifiers import (
    DEFAULT_MODIFIER,
    ModifierContext,
    UseModifierBase,
)

__all__ = [
    "DEFAULT_MODIFIER",
    "ModifierContext",
    "UseModifierBase",
]
