# SPDX-License-Identifier: Apache-2.0
"""The folder of ``bridge.h``, for libraries in C and C++."""

from __future__ import annotations

import os

__all__ = ["get_include"]


def get_include() -> str:
    """Return the folder of ``bridge.h``, for the compiler's option ``-I``.

    >>> import bridge, os
    >>> os.listdir(bridge.get_include()).count("bridge.h")
    1
    """
    return os.path.dirname(os.path.abspath(__file__))
