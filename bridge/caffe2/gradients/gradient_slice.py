# SPDX-License-Identifier: Apache-2.0
"""GradientSlice: a sparse gradient, of some rows of a blob."""

from __future__ import annotations

from collections import namedtuple


class GradientSlice(namedtuple("GradientSlice", ["indices", "values"])):
    """A sparse gradient: two blobs, of the indices of rows and the gradients of these rows.

    The gradient of a row that is listed twice is the sum; a row not listed has the gradient zero.
    Follows GradientSlice, caffe2/python/core.py, PyTorch 1.8.1.
    """

    __slots__ = ()
