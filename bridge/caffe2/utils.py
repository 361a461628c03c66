# SPDX-License-Identifier: Apache-2.0
"""Names of ``caffe2.python.utils``: arguments, and tensors in messages from and to NumPy."""

from __future__ import annotations

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.base.debugging import DebugMode, debug
from bridge.caffe2.base.message_text import (
    CaffeBlobToNumpyArray,
    ConvertProtoToBinary,
    GetContentFromProto,
    GetContentFromProtoString,
    TryReadProtoWithClass,
)
from bridge.caffe2.base.messages import as_message, caffe2_pb2
from bridge.caffe2.blobs.tensor_proto import Caffe2TensorToNumpyArray, NumpyArrayToCaffe2Tensor
from bridge.caffe2.definitions.arguments import MakeArgument
from bridge.caffe2.models.iteration import (
    ITERATION_MUTEX_NAME,
    OPTIMIZER_ITERATION_NAME,
    BuildUniqueMutexIter,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

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
    from bridge.caffe2.workspace import ResetBlob

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
