# SPDX-License-Identifier: Apache-2.0
"""caffe2.Tensor."""

from __future__ import annotations

# Also the path by which pickles name the class.
from bridge.caffe2.tensor.tensor import Tensor

__all__ = ["Tensor"]
