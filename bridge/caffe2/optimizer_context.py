# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.optimizer_context``: optimizers of some parameters only."""

from __future__ import annotations

from bridge.caffe2.models.modifiers import DEFAULT_MODIFIER as DEFAULT_OPTIM
from bridge.caffe2.models.modifiers import OptimizerContext, UseOptimizer

__all__ = ["DEFAULT_OPTIM", "OptimizerContext", "UseOptimizer"]
