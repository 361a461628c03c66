# SPDX-License-Identifier: Apache-2.0
"""Names of ``caffe2.python.utils``: arguments, and tensors in messages from and to NumPy."""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.base.debugging import DebugMode, debug
from bridge.caffe2.base.message_text import (
    CaffeBlobToNumpyArray,
    ConvertProtoToBinary,
    GetContentFromProto,
    GetContentFromProtoString,
    TryReadProtoWithClass,
)
from bridge.caffe2.base.messages import as_message, caffe2_pb2
from bridge.caffe2.definitions.arguments import MakeArgument
from bridge.caffe2.workspaces.blob_functions import ResetBlob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

__all__ = [
    "ITERATION_MUTEX_NAME",
    "OPTIMIZER_ITERATION_NAME",
    "ArgsToDict",
    "BuildUniqueMutexIter",
    "Caffe2TensorToNumpyArray",
    "CaffeBlobToNumpyArray",
    "ConvertProtoToBinary",
    "DebugMode",
    "EnumClassKeyVals",
    "GetContentFromProto",
    "GetContentFromProtoString",
    "MakeArgument",
    "NCHW2NHWC",
    "NHWC2NCHW",
    "NumpyArrayToCaffe2Tensor",
    "OpAlmostEqual",
    "ResetBlobs",
    "TryReadProtoWithClass",
    "debug",
    "raiseIfNotEqual",
]

# Names of the blobs that count the steps of a training, and guard the count.
OPTIMIZER_ITERATION_NAME = "optimizer_iteration"
ITERATION_MUTEX_NAME = "iteration_mutex"

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
            "Caffe2TensorToNumpyArray",
        )
    field, dtype = found
    try:
        return np.asarray(getattr(message, field), dtype=dtype).reshape(tuple(message.dims))
    except (ValueError, OverflowError) as cause:
        raise EnforceValueError(
            f"The message's values are no tensor of sizes {list(message.dims)}: {cause}",
            "Caffe2TensorToNumpyArray",
        ) from cause


def NumpyArrayToCaffe2Tensor(arr: np.ndarray[Any, Any], name: str | None = None) -> Any:
    """Copy an array of numbers into a TensorProto. Raises EnforceNotMet: no type for them."""
    found = [(number, field) for number, (field, dtype) in _FIELDS.items() if arr.dtype == dtype]
    if not found or arr.dtype.kind == "b":
        raise EnforceNotMet(
            f"Numpy data type not supported yet: {arr.dtype}", "NumpyArrayToCaffe2Tensor"
        )
    number, field = found[0]
    tensor = caffe2_pb2().TensorProto()
    tensor.dims.extend(arr.shape)
    if name:
        tensor.name = name
    tensor.data_type = number
    getattr(tensor, field).extend(arr.reshape(-1).tolist())
    return tensor


def OpAlmostEqual(op_a: Any, op_b: Any, ignore_fields: Any = None) -> bool:
    """Return whether two OperatorDefs are the same but for the fields named."""
    fields = [ignore_fields] if isinstance(ignore_fields, str) else ignore_fields or []
    if not all(isinstance(field, str) for field in fields):
        raise EnforceAssertionError(
            f"Expect each field is text type, but got {fields}", "OpAlmostEqual"
        )
    cleaned = []
    for op in (op_a, op_b):
        message = caffe2_pb2().OperatorDef()
        message.CopyFrom(as_message(op, "OperatorDef", "OpAlmostEqual"))
        for field in fields:
            message.ClearField(field)
        cleaned.append(message)
    return bool(cleaned[0] == cleaned[1])


def ArgsToDict(args: Any) -> dict[str, Any]:
    """Return the value of each Argument by its name; None where it has none."""
    values: dict[str, Any] = {}
    for arg in args:
        found = [value for field, value in arg.ListFields() if field.name != "name"]
        if arg.HasField("name"):
            values[arg.name] = found[0] if found else None
    return values


def ResetBlobs(blobs: Any) -> None:
    """Make each of the blobs hold nothing."""
    for blob in blobs:
        ResetBlob(blob)


def raiseIfNotEqual(a: Any, b: Any, msg: str) -> None:
    """Raise EnforceNotMet where the two are not equal."""
    if a != b:
        raise EnforceNotMet(f"{msg}. {a} != {b}", "raiseIfNotEqual", condition="a == b")


def _refuse_flat(tensor: Any, caller: str) -> None:
    if tensor.ndim < 2:
        raise EnforceAssertionError(
            f"An array of {tensor.ndim} dimensions has no channels.", caller, condition="ndim >= 2"
        )


def NHWC2NCHW(tensor: Any) -> Any:
    """Return an array with its last dimension second, as a view.

    Raises EnforceNotMet, also an AssertionError: it has one dimension, or none.
    """
    _refuse_flat(tensor, "NHWC2NCHW")
    return tensor.transpose((0, tensor.ndim - 1, *range(1, tensor.ndim - 1)))


def NCHW2NHWC(tensor: Any) -> Any:
    """Return an array with its second dimension last, as a view.

    Raises EnforceNotMet, also an AssertionError: it has one dimension, or none.
    """
    _refuse_flat(tensor, "NCHW2NHWC")
    return tensor.transpose((0, *range(2, tensor.ndim), 1))


def EnumClassKeyVals(cls: type) -> dict[str, str]:
    """Return the strings of a class by their names, which are in capitals.

    Raises EnforceNotMet, also an AssertionError: no class, or two have the same value.
    """
    if not isinstance(cls, type):
        raise EnforceAssertionError(f"{cls!r} is no class.", "EnumClassKeyVals")
    found: dict[str, str] = {}
    for name in dir(cls):
        value = getattr(cls, name)
        if name == name.upper() and isinstance(value, str):
            if value in found.values():
                raise EnforceAssertionError(
                    f"Failed to resolve {cls} as Enum: {value!r} has two names.",
                    "EnumClassKeyVals",
                )
            found[name] = value
    return found


def BuildUniqueMutexIter(
    init_net: Any, net: Any, iter: Any = None, iter_mutex: Any = None, iter_val: int = 0
) -> Any:
    """Refer to the count of a training's steps; add it to the nets where it is not there yet.

    `init_net` makes the count, an int64 on the CPU that begins at `iter_val`, and its mutex, `net`
    counts.
    """
    from bridge.caffe2.definitions.create_operator import DeviceOption
    from bridge.caffe2.definitions.scopes import DeviceScope

    count = OPTIMIZER_ITERATION_NAME if iter is None else iter
    if init_net.BlobIsDefined(count):
        return init_net.GetBlobRef(count)
    with DeviceScope(DeviceOption(0, extra_info=["device_type_override:cpu"])):
        made = init_net.ConstantFill([], count, shape=[1], value=iter_val, dtype=DataType.INT64)
        mutex = init_net.CreateMutex([], [iter_mutex or ITERATION_MUTEX_NAME])
        net.AtomicIter([mutex, made], [made])
    return made
