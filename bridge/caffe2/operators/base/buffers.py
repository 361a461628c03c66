# SPDX-License-Identifier: Apache-2.0
"""The buffers of the outputs of operators whose number of outputs varies."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.function_operator import Out


def first_buffer(out: Out) -> Tensor | None:
    """Return the buffer of the first output; `out` is a tuple if there are several."""
    return out[0] if isinstance(out, tuple) else out
