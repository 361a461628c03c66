# SPDX-License-Identifier: Apache-2.0
"""TensorProtos to and from NumPy arrays.

Follows caffe2/python/utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any, Array
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import ELEMENT_TYPES, FIELDS, NUMBERS, DataType
from bridge.caffe2.base.messages import as_message, caffe2_pb2

# Their fields do not hold the values as numbers.
_ENCODED = (DataType.BYTE, DataType.FLOAT16, DataType.STRING)


def Caffe2TensorToNumpyArray(tensor: Any) -> Array:
    """Copy the values of a TensorProto into a new array of its type and sizes.

    Raises EnforceNotMet: strings, float16 and BYTE, for which DeserializeBlob is; or (also a
    ValueError) the number of values differs from the number of elements.
    """
    import numpy as np

    caller = "Caffe2TensorToNumpyArray"
    message = as_message(tensor, "TensorProto", caller)
    number = message.data_type
    if number not in ELEMENT_TYPES or number in _ENCODED:
        raise EnforceNotMet(
            f"Tensor data type not supported yet: {number}; put the message into a blob by "
            "workspace.DeserializeBlob.",
            caller,
        )
    values = getattr(message, FIELDS[number])
    sizes = list(message.dims)
    try:
        return np.asarray(values, dtype=ELEMENT_TYPES[number].name).reshape(sizes)
    except (ValueError, OverflowError) as cause:
        raise EnforceValueError(
            f"The message's values are not a tensor of sizes {sizes}: {cause}", caller
        ) from cause


def NumpyArrayToCaffe2Tensor(arr: Array, name: str | None = None) -> Any:
    """Copy an array of numbers into a new TensorProto.

    Raises EnforceNotMet: the array has bools, float16 or another type without a field of its own.
    """
    number = next((n for name, n in NUMBERS.items() if arr.dtype == name), DataType.BOOL)
    if number in (DataType.BOOL, *_ENCODED):
        raise EnforceNotMet(
            f"Numpy data type not supported yet: {arr.dtype}", "NumpyArrayToCaffe2Tensor"
        )
    tensor = caffe2_pb2().TensorProto()
    tensor.dims.extend(arr.shape)
    if name:
        tensor.name = name
    tensor.data_type = number
    getattr(tensor, FIELDS[number]).extend(arr.reshape(-1).tolist())
    return tensor
