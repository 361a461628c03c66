# SPDX-License-Identifier: Apache-2.0
"""The release of torch that tests run with, for what older ones cannot do."""

from __future__ import annotations

import pytest
import torch

from bridge import c10

release = tuple(map(int, torch.__version__.split(".")[:2]))


def require_release(major: int, minor: int, why: str) -> None:
    """Skip the test where torch is older; `why` says what those cannot do."""
    if release < (major, minor):
        pytest.skip(f"before torch {major}.{minor}, {why}")


def error_of_export() -> type[BaseException]:
    """Return the class of an error that a module raises while torch exports it.

    Before torch 2.9 it is torch's own, with the text of the error.
    """
    if release >= (2, 9):
        return c10.EnforceNotMet
    from torch._dynamo.exc import Unsupported

    return Unsupported
