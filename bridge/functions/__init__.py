# SPDX-License-Identifier: Apache-2.0
"""Functions of one library as functions of all others, with their gradients.

`inside` has a file for each library that a function may be written for, `outside` one for each
whose gradients cross. A library is imported when it is first met.
"""

from __future__ import annotations

from bridge.functions.wrapping import wrap

__all__ = ["wrap"]
