# SPDX-License-Identifier: Apache-2.0
"""The element types of Caffe2's messages: the number, type and field of each."""

from __future__ import annotations

from bridge import c10
from bridge.annotation import Any, Final
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceValueError


class DataType:
    """The numbers of the element types in Caffe2's ``TensorProto``.

    Plain ints, as in Caffe2. Follows TensorProto.DataType, caffe2/proto/caffe2.proto, PyTorch
    1.8.1, where the number 11 is not used.

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


# The element type that each number stands for. `TypeMeta.name` is NumPy's name of the type, except
# for strings.
ELEMENT_TYPES: dict[int, TypeMeta] = {
    DataType.FLOAT: c10.float32,
    DataType.INT32: c10.int32,
    DataType.BYTE: c10.uint8,
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

# The field of TensorProto that holds the values of each type. int32_data has the bits of a float16.
FIELDS: dict[int, str] = {
    DataType.FLOAT: "float_data",
    DataType.BYTE: "byte_data",
    DataType.STRING: "string_data",
    DataType.INT64: "int64_data",
    DataType.DOUBLE: "double_data",
    **dict.fromkeys(
        (
            DataType.INT32,
            DataType.BOOL,
            DataType.UINT8,
            DataType.INT8,
            DataType.UINT16,
            DataType.INT16,
            DataType.FLOAT16,
        ),
        "int32_data",
    ),
}

# The number of each element type, by the type's name: a TypeMeta that is hashed before torch is
# imported never has the hash of its torch.dtype. BYTE is the old number of uint8, which is read but
# not written.
NUMBERS: dict[str, int] = {
    meta.name: number for number, meta in ELEMENT_TYPES.items() if number != DataType.BYTE
}

_NUMBERS_BY_NAME = {
    name: number
    for name, number in vars(DataType).items()
    if not name.startswith("_") and isinstance(number, int)
}


def number_of_argument(value: Any, name: str) -> int:
    """Return Caffe2's number of the type that the argument `name` specifies.

    `value` is the argument's value: a number, or a name in upper or lower case.

    Raises EnforceNotMet, also a ValueError: it specifies no element type, or BYTE, which operators
    refuse. Follows GetCastDataType, caffe2/utils/cast.h, PyTorch 1.8.1.
    """
    number = _NUMBERS_BY_NAME.get(value.upper()) if isinstance(value, str) else value
    if number == DataType.BYTE or not isinstance(number, int) or number not in ELEMENT_TYPES:
        raise EnforceValueError(
            f"Argument {name!r} is {value!r}, which is not an element type; core.DataType has "
            f"{', '.join(sorted(_NUMBERS_BY_NAME))}."
        )
    return number


def type_of_argument(value: Any, name: str) -> TypeMeta:
    """Return the type that the argument `name` specifies; see `number_of_argument`."""
    return ELEMENT_TYPES[number_of_argument(value, name)]
