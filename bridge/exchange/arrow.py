# SPDX-License-Identifier: Apache-2.0
"""pyarrow's classes, which have more than one protocol: Arrow's own says the most."""

from __future__ import annotations

from typing import Any

from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.arrow_import import has_arrow_method, import_arrow
from bridge.exchange.buffer_import import import_plain_buffer

__all__ = ["import_"]


def import_(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of an array, a table, a tensor or a buffer; None for other objects.

    pyarrow's ``__dlpack__`` refuses booleans and lists of one size, and in old releases loses that
    a tensor is read-only.
    """
    return import_arrow(x, copy) if has_arrow_method(x) else import_plain_buffer(x)
