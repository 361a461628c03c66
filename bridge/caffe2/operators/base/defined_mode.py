# SPDX-License-Identifier: Apache-2.0
"""Operators whose number of outputs varies: by their mode, and their buffers."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out


class DefinedMode:
    """The argument `is_test` of a definition, which implies the number of outputs.

    A module whose mode is set passes another `is_test` to the function, with the same outputs.
    """

    takes = "int is_test"

    def __init__(self, arguments: Arguments) -> None:
        self.is_test = bool(arguments.single("is_test", 0))


def first_buffer(out: Out) -> Tensor | None:
    """Return the buffer of the first output; `out` is a tuple if there are several."""
    return out[0] if isinstance(out, tuple) else out
