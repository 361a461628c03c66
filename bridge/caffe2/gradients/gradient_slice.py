# SPDX-License-Identifier: Apache-2.0
"""GradientSlice: the gradient of some rows of a blob."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NamedTuple

    class GradientSlice(NamedTuple):
        """A sparse gradient: two blobs, the numbers of rows and the gradients of these rows.

        A row may come twice; its gradient is then the sum. What is in no row has gradient zero.
        Follows GradientSlice, caffe2/python/core.py, PyTorch 1.8.1.
        """

        indices: Any
        values: Any

else:
    from collections import namedtuple

    class GradientSlice(namedtuple("GradientSlice", ["indices", "values"])):
        """A sparse gradient: two blobs, the numbers of rows and the gradients of these rows.

        A row may come twice; its gradient is then the sum. What is in no row has gradient zero.
        Follows GradientSlice, caffe2/python/core.py, PyTorch 1.8.1.
        """

        __slots__ = ()


__all__ = ["GradientSlice"]
