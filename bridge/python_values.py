# SPDX-License-Identifier: Apache-2.0
"""From Python numbers, nested lists and strings to at.Tensor, with NumPy's rules for types."""

from __future__ import annotations

from bridge.at.tensor import Tensor
from bridge.c10.device import Device
from bridge.c10.reports import report_copy
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.strings import first_leaf, import_strings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["array_by_method", "is_numbers", "is_strings", "tensor_of_numbers", "tensor_of_strings"]


def is_numbers(x: Any) -> bool:
    """Return whether `x` is a Python number, list, tuple or range."""
    return isinstance(x, (bool, int, float, complex, list, tuple, range))


def is_strings(x: Any, dtype: Any) -> bool:
    """Return whether `x` becomes strings: it is text or ``bytes``, or a list of such."""
    if dtype is not None:
        meta = TypeMeta.Make(dtype)
        if isinstance(x, (str, bytes)):
            return meta.name == "string"
        # text for a numeric type is NumPy's to parse or to refuse
        return not meta.is_pod
    if isinstance(x, (str, bytes)):
        return True
    if hasattr(type(x), "__torch_function__"):  # not for a subclass of torch.Tensor to answer
        return False
    if getattr(getattr(x, "dtype", None), "kind", "") in ("S", "U") and hasattr(x, "tolist"):
        return True
    return isinstance(first_leaf(x), (str, bytes))


def tensor_of_strings(x: Any, device: Any, copy: bool | None) -> Tensor:
    """Return an at.Tensor of type string: for tolist(), or for caffe2.Tensor(x).

    Raises BufferError: `copy` is False, or `device` is not the CPU. ValueError: a ragged list.
    """
    if copy is not False and device is not None and Device(device) != "cpu":
        raise BufferError(f"Tensors of strings exist on the CPU only, not on {device}.")
    return Tensor._wrap(import_strings(x, copy))


def tensor_of_numbers(x: Any, dtype: Any, device: Any) -> Tensor:
    """Return an at.Tensor of the numbers in `x`, of type `dtype` or of the one NumPy infers.

    Raises ValueError: a ragged list, one that contains itself, or a number out of range for
    `dtype`. TypeError: not numbers of at most 64 bits each.
    """
    import numpy

    first_leaf(x)
    if dtype is None:
        array = numpy.array(x)
    else:
        meta = TypeMeta.Make(dtype)
        try:
            array = numpy.array(x, dtype=meta.numpy)
        except OverflowError as error:
            raise ValueError(f"A value does not fit {meta}: {error}") from error
    if array.dtype.kind not in "biufcV" or array.dtype.names is not None:
        raise TypeError(
            f"NumPy makes {array.dtype} of this {type(x).__name__}, which is not a numeric type. "
            "Give numbers only, of 64 bits at most, or strings only."
        )
    report_copy(array.nbytes, "Python numbers have no tensor's memory")
    # copied once more, into memory of the bridge: aligned, and of the current allocator
    copied = Tensor._wrap(import_tensor(array)).clone()
    return copied if device is None else copied.to(device)


def array_by_method(x: Any, copy: bool | None) -> Any:
    """Return the NumPy array that ``x.__array__()`` returns; None if `x` has no such method.

    Raises BufferError: it does not return one, or `copy` is False and it needs a copy.
    """
    if isinstance(x, type) or not hasattr(type(x), "__array__"):
        return None
    import numpy

    options: dict[str, Any] = {}
    if copy is False:
        if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
            raise BufferError(
                f"Only NumPy 2 can ask {type(x).__name__}.__array__ not to copy. Allow a copy with "
                "copy=None."
            )
        options = {"copy": False}
    try:
        return numpy.asarray(x, **options)
    except Exception as error:
        raise BufferError(
            f"{type(x).__name__}.__array__ does not return an array: {error}"
        ) from error
