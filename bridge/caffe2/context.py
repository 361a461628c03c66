# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.context``: context managers found by their class."""

from __future__ import annotations

from bridge.caffe2.models.context import (
    DefaultManaged,
    Managed,
)

__all__ = [
    "DefaultManaged",
    "Managed",
]
