# SPDX-License-Identifier: Apache-2.0
"""Whether a definition is for test or for training, whatever a module has set since."""

from __future__ import annotations

from bridge.caffe2.execution.declaration import Arguments


class DefinedMode:
    """The argument `is_test` of a definition, which implies the number of outputs.

    A module whose mode is set passes another `is_test` to the function, with the same outputs.
    """

    takes = "int is_test"

    def __init__(self, arguments: Arguments) -> None:
        self.is_test = bool(arguments.single("is_test", 0))
