# SPDX-License-Identifier: Apache-2.0
"""Names of ``caffe2.python.utils``: arguments, and tensors in messages from and to NumPy."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.arguments import MakeArgument
from bridge.caffe2.data_type import DataType
from bridge.caffe2.messages import as_message, caffe2_pb2

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

__all__ = [
    "ArgsToDict",
    "Caffe2TensorToNumpyArray",
    "MakeArgument",
    "NCHW2NHWC",
    "NHWC2NCHW",
    "NumpyArrayToCaffe2Tensor",
    "OpAlmostEqual",
    "ResetBlobs",
    "TryReadProtoWithClass",
    "raiseIfNotEqual",
]

# For each element type: the field of TensorProto that holds it, and NumPy's name of the type.
_FIELDS = {
    DataType.FLOAT: ("float_data", "float32"),
    DataType.DOUBLE: ("double_data", "float64"),
    DataType.INT64: ("int64_data", "int64"),
    DataType.INT32: ("int32_data", "int32"),
    DataType.INT16: ("int32_data", "int16"),
    DataType.UINT16: ("int32_data", "uint16"),
    DataType.INT8: ("int32_data", "int8"),
    DataType.UINT8: ("int32_data", "uint8"),
    DataType.BOOL: ("int32_data", "bool"),
}


def Caffe2TensorToNumpyArray(tensor: Any) -> np.ndarray[Any, Any]:
    """Copy the numbers of a TensorProto into an array of its type and sizes.

    Raises EnforceNotMet: of another element type than those of whole bytes, or not as many numbers
    as the sizes make. Follows caffe2/python/utils.py, PyTorch 1.8.1.
    """
    import numpy as np

    message = as_message(tensor, "TensorProto", "Caffe2TensorToNumpyArray")
    found = _FIELDS.get(message.data_type)
    if found is None:
        raise EnforceNotMet(
            f"Tensor data type not supported yet: {message.data_type}; put the message into a blob "
            "by workspace.DeserializeBlob.",
            "",
            "Caffe2TensorToNumpyArray",
        )
    field, dtype = found
    try:
        return np.asarray(getattr(message, field), dtype=dtype).reshape(tuple(message.dims))
    except (ValueError, OverflowError) as cause:
        raise EnforceValueError(
            f"The message's values are no tensor of sizes {list(message.dims)}: {cause}",
            "",
            "Caffe2TensorToNumpyArray",
        ) from cause


def NumpyArrayToCaffe2Tensor(arr: np.ndarray[Any, Any], name: str | None = None) -> Any:
    """Copy an array of numbers into a TensorProto. Raises EnforceNotMet: no type for them."""
    found = [(number, field) for number, (field, dtype) in _FIELDS.items() if arr.dtype == dtype]
    if not found:
        raise EnforceNotMet(
            f"Numpy data type not supported yet: {arr.dtype}", "", "NumpyArrayToCaffe2Tensor"
        )
    number, field = found[0]
    tensor = caffe2_pb2().TensorProto()
    tensor.dims.extend(arr.shape)
    if name:
        tensor.name = name
    tensor.data_type = number
    getattr(tensor, field).extend(arr.reshape(-1).tolist())
    return tensor


def TryReadProtoWithClass(cls: type, s: Any) -> Any:
    """Read a message of class `cls` from text, or else from bytes.

    Raises EnforceNotMet, also a ValueError: it is neither.
    """
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    message = cls()
    try:
        return text_format.Parse(s, message)
    except (text_format.ParseError, UnicodeDecodeError):
        message = cls()
    try:
        message.ParseFromString(s.encode() if isinstance(s, str) else s)
    except DecodeError as cause:
        raise EnforceValueError(
            f"That is no {cls.__name__}, neither as text nor as bytes: {cause}",
            "",
            "TryReadProtoWithClass",
        ) from cause
    return message


def OpAlmostEqual(op_a: Any, op_b: Any, ignore_fields: Any = None) -> bool:
    """Say whether two OperatorDefs are the same but for the fields named."""
    fields = [ignore_fields] if isinstance(ignore_fields, str) else ignore_fields or []
    cleaned = []
    for op in (op_a, op_b):
        message = caffe2_pb2().OperatorDef()
        message.CopyFrom(as_message(op, "OperatorDef", "OpAlmostEqual"))
        for field in fields:
            message.ClearField(field)
        cleaned.append(message)
    return bool(cleaned[0] == cleaned[1])


def ArgsToDict(args: Any) -> dict[str, Any]:
    """Give the value of each Argument by its name; None where it has none."""
    values: dict[str, Any] = {}
    for arg in args:
        found = [value for field, value in arg.ListFields() if field.name != "name"]
        if arg.HasField("name"):
            values[arg.name] = found[0] if found else None
    return values


def ResetBlobs(blobs: Any) -> None:
    """Make each of the blobs hold nothing."""
    from bridge.caffe2.workspace import ResetBlob

    for blob in blobs:
        ResetBlob(blob)


def raiseIfNotEqual(a: Any, b: Any, msg: str) -> None:
    """Raise EnforceNotMet where the two are not equal."""
    if a != b:
        raise EnforceNotMet(f"{msg}. {a} != {b}", "a == b", "raiseIfNotEqual")


def NHWC2NCHW(tensor: Any) -> Any:
    """Give an array with its last dimension second, as a view."""
    return tensor.transpose((0, tensor.ndim - 1, *range(1, tensor.ndim - 1)))


def NCHW2NHWC(tensor: Any) -> Any:
    """Give an array with its second dimension last, as a view."""
    return tensor.transpose((0, *range(2, tensor.ndim), 1))
