# SPDX-License-Identifier: Apache-2.0
"""The numbers of Caffe2's element types."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


__all__ = ["DataType"]


class DataType:
    """The element types of Caffe2's ``TensorProto``, by the numbers that its messages use.

    Plain ints, as in Caffe2. Follows TensorProto.DataType, caffe2/proto/caffe2.proto, PyTorch
    1.8.1; the number 11 was never given out.

    >>> from bridge.caffe2 import core
    >>> core.DataType.FLOAT, core.DataType.INT64
    (1, 10)
    """

    UNDEFINED: Final = 0
    FLOAT: Final = 1
    INT32: Final = 2
    BYTE: Final = 3
    STRING: Final = 4
    BOOL: Final = 5
    UINT8: Final = 6
    INT8: Final = 7
    UINT16: Final = 8
    INT16: Final = 9
    INT64: Final = 10
    FLOAT16: Final = 12
    DOUBLE: Final = 13
    ZERO_COLLISION_HASH: Final = 14
