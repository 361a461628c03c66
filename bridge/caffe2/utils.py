# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.utils``: arguments, messages as text, tensors in messages, arrays.

>>> import numpy as np
>>> from bridge.caffe2 import utils
>>> message = utils.NumpyArrayToCaffe2Tensor(np.arange(3), "x")
>>> message.name, list(message.dims), utils.Caffe2TensorToNumpyArray(message)
('x', [3], array([0, 1, 2]))
>>> utils.ArgsToDict([utils.MakeArgument("axis", 1)])
{'axis': 1}
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.base.message_text import (
    CaffeBlobToNumpyArray,
    ConvertProtoToBinary,
    GetContentFromProto,
    GetContentFromProtoString,
    TryReadProtoWithClass,
)
from bridge.caffe2.blobs.tensor_proto import Caffe2TensorToNumpyArray, NumpyArrayToCaffe2Tensor
from bridge.caffe2.definitions.argument_values import ArgsToDict, MakeArgument
from bridge.caffe2.definitions.create_operator import OpAlmostEqual
from bridge.caffe2.optimizer.learning_rates import (
    ITERATION_MUTEX_NAME,
    OPTIMIZER_ITERATION_NAME,
    BuildUniqueMutexIter,
)
from bridge.caffe2.workspaces.blob_functions import ResetBlob

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


def ResetBlobs(blobs: Any) -> None:
    """Empty each of the blobs, which keep their names; see ``workspace.ResetBlob``."""
    for blob in blobs:
        ResetBlob(blob)


def raiseIfNotEqual(a: Any, b: Any, msg: str) -> None:
    """Raise EnforceNotMet, with `msg` and both values, if `a` and `b` differ."""
    if a != b:
        raise EnforceNotMet(f"{msg}. {a} != {b}", "raiseIfNotEqual", condition="a == b")


def _check_channels(tensor: Any, caller: str) -> None:
    if tensor.ndim < 2:
        raise EnforceAssertionError(
            f"An array of {tensor.ndim} dimensions has no channel dimension.",
            caller,
            condition="ndim >= 2",
        )


def NHWC2NCHW(tensor: Any) -> Any:
    """Return a view of an array with its last dimension moved to the second place.

    (N, d1, ..., C) → (N, C, d1, ...). Raises EnforceNotMet, also an AssertionError: fewer than two
    dimensions.
    """
    _check_channels(tensor, "NHWC2NCHW")
    return tensor.transpose((0, tensor.ndim - 1, *range(1, tensor.ndim - 1)))


def NCHW2NHWC(tensor: Any) -> Any:
    """Return a view of an array with its second dimension moved to the last place.

    (N, C, d1, ...) → (N, d1, ..., C). Raises EnforceNotMet, also an AssertionError: fewer than two
    dimensions.
    """
    _check_channels(tensor, "NCHW2NHWC")
    return tensor.transpose((0, *range(2, tensor.ndim), 1))


def EnumClassKeyVals(cls: type) -> dict[str, str]:
    """Return a dict of the attributes of a class with upper-case names and str values.

    Raises EnforceNotMet, also an AssertionError: `cls` is not a class, or two values are equal.
    """
    if not isinstance(cls, type):
        raise EnforceAssertionError(f"{cls!r} is not a class.", "EnumClassKeyVals")
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


class DebugMode:
    """Runs functions, and starts the debugger where they raise."""

    @classmethod
    def run(cls, func: Callable[[], Any]) -> Any:
        """Call `func`. If it raises, print the error, start pdb there, and exit with status 1."""
        try:
            return func()
        except Exception as error:  # noqa: BLE001 - any error is shown
            import pdb
            import traceback

            traceback.print_exception(type(error), error, error.__traceback__)
            pdb.post_mortem(error.__traceback__)
            sys.exit(1)


def debug(f: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `f` in `DebugMode`."""

    @functools.wraps(f)
    def called(*args: Any, **kwargs: Any) -> Any:
        return DebugMode.run(lambda: f(*args, **kwargs))

    return called
