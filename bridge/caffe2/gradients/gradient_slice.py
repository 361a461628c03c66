# SPDX-License-Identifier: Apache-2.0
"""GradientSlice, a sparse gradient of some rows of a blob, and Caffe2's records of gradients.

Follows caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

from bridge.annotation import Any


class GradientSlice(namedtuple("GradientSlice", ["indices", "values"])):
    """A sparse gradient: two blobs, of the indices of rows and the gradients of these rows.

    The gradient of a row that is listed twice is the sum; a row not listed has the gradient zero.
    """

    __slots__ = ()


# An operator, and dicts of the versions of the blobs that it reads and writes.
OpSSA = namedtuple("OpSSA", ["op", "in_versions", "out_versions"])

# The source of a gradient: output number `idx` of the operator `grad_op`, or the blob `gradient`.
GradGenMeta = namedtuple("GradGenMeta", ["grad_op", "idx", "gradient", "device_option"])

# The same for a GradientSlice, whose indices and values come from different operators.
SparseGradGenMeta = namedtuple(
    "SparseGradGenMeta",
    [
        "grad_op_indices",
        "idx_indices",
        "grad_op_values",
        "idx_values",
        "gradient",
        "device_option",
    ],
)


def GetIndexFromGradientList(g_list: Iterable[Any], name: Any) -> int | None:
    """Return the position of a gradient in a list; None if it is not there.

    A GradientSlice is found by the name of its indices or values, too.
    """
    for position, gradient in enumerate(g_list):
        parts = gradient if isinstance(gradient, GradientSlice) else ()
        if gradient == name or name in parts:
            return position
    return None
