# SPDX-License-Identifier: Apache-2.0
"""Element types as operators' arguments name them: by Caffe2's number or by name.

All but BYTE, the old name of UINT8, which the operators refuse as those of Caffe2 do.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.data_types import DataType

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["TYPES", "number_of_argument", "type_of_argument"]

TYPES: dict[int, TypeMeta] = {
    DataType.FLOAT: c10.float32,
    DataType.INT32: c10.int32,
    DataType.STRING: c10.string,
    DataType.BOOL: c10.bool,
    DataType.UINT8: c10.uint8,
    DataType.INT8: c10.int8,
    DataType.UINT16: c10.uint16,
    DataType.INT16: c10.int16,
    DataType.INT64: c10.int64,
    DataType.FLOAT16: c10.float16,
    DataType.DOUBLE: c10.float64,
}

_NUMBERS = {
    name: number
    for name, number in vars(DataType).items()
    if not name.startswith("_") and isinstance(number, int)
}


def number_of_argument(value: Any, name: str) -> int:
    """Return Caffe2's number of the type that an argument says, a number or a name in either case.

    Raises EnforceNotMet, also a ValueError: it says none. Follows GetCastDataType,
    caffe2/utils/cast.h.
    """
    number = _NUMBERS.get(value.upper()) if isinstance(value, str) else value
    if not isinstance(number, int) or number not in TYPES:
        raise EnforceValueError(
            f"Argument {name!r} is {value!r}, and names no element type; those of core.DataType "
            f"are {', '.join(sorted(_NUMBERS))}."
        )
    return number


def type_of_argument(value: Any, name: str) -> TypeMeta:
    """Return the type that argument `name` says, as `number_of_argument` reads it."""
    return TYPES[number_of_argument(value, name)]
