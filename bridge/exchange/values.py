# SPDX-License-Identifier: Apache-2.0
"""Tensors out of plain Python values, with NumPy's rules for their types."""

from __future__ import annotations

from bridge.c10.reports import report_copy
from bridge.c10.type_meta import TypeMeta

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["arrayed", "is_plain", "is_text", "plain", "text"]

_STRINGS = "strings are copied into a tensor"


def is_plain(x: Any) -> bool:
    """Whether `x` is a Python number or a list or tuple."""
    return isinstance(x, (bool, int, float, complex, list, tuple, range))


def is_text(x: Any, dtype: Any) -> bool:
    """Whether `x` makes strings: text, ``bytes``, or a list that holds such."""
    if dtype is not None:
        meta = TypeMeta.Make(dtype)
        if isinstance(x, (str, bytes)):
            return meta.name == "string"
        # text that is to be numbers is NumPy's to read, or to refuse
        return not meta.is_pod
    if isinstance(x, (str, bytes)):
        return True
    if hasattr(type(x), "__torch_function__"):  # a subclass of torch.Tensor answers for itself
        return False
    if getattr(getattr(x, "dtype", None), "kind", "") in ("S", "U") and hasattr(x, "tolist"):
        return True
    return isinstance(_first(x), (str, bytes))


def _first(x: Any) -> Any:
    """The first element of nested lists. Raises ValueError: a list that contains itself."""
    seen: set[int] = set()
    while isinstance(x, (list, tuple)) and x:
        if id(x) in seen:
            raise ValueError("The list contains itself, so it has no sizes.")
        seen.add(id(x))
        x = x[0]
    return x


def text(x: Any, device: Any, copy: bool | None) -> Any:
    """An at.Tensor of type string: to read by tolist(), or through caffe2.Tensor(x)."""
    from bridge.at.tensor import Tensor as At
    from bridge.c10.device import Device
    from bridge.caffe2.tensor.tensor import Tensor

    if copy is False:
        raise BufferError("Strings are copied into a tensor. Allow it with copy=None.")
    if device is not None and Device(device) != "cpu":
        raise BufferError(f"Strings live on the CPU, not on {device}.")
    if hasattr(x, "tolist"):
        x = x.tolist()
    if isinstance(x, (str, bytes)):
        report_copy(len(x), _STRINGS)
        return At._wrap(Tensor([], [x], "string").unsafeGetTensorImpl())
    _first(x)  # refuses what has no end
    sizes: list[int] = []
    level: list[Any] = list(x)
    sizes.append(len(level))
    while level and isinstance(level[0], (list, tuple)):
        width = len(level[0])
        if any(not isinstance(row, (list, tuple)) or len(row) != width for row in level):
            raise ValueError("The list of strings is ragged.")
        sizes.append(width)
        level = [one for row in level for one in row]
    report_copy(sum(len(one) for one in level if isinstance(one, (str, bytes))), _STRINGS)
    return At._wrap(Tensor(sizes, level, "string").unsafeGetTensorImpl())


def plain(x: Any, dtype: Any, device: Any) -> Any:
    """An at.Tensor of numbers, of NumPy's type for them or `dtype`."""
    import numpy

    from bridge.at.tensor import Tensor
    from bridge.exchange.ingest import ingest

    _first(x)  # refuses what has no end
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
            f"NumPy makes {array.dtype} of this {type(x).__name__}, which is no type of numbers. "
            "Give numbers only, of 64 bits at most, or strings only."
        )
    report_copy(array.nbytes, "Python numbers have no tensor's memory")
    # copied once more, into memory of the bridge: aligned, and of the allocator in force
    copied = Tensor._wrap(ingest(array)).clone()
    return copied if device is None else copied.to(device)


def arrayed(x: Any, copy: bool | None) -> Any:
    """The NumPy array that ``x.__array__`` gives; None where there is no such method.

    Raises BufferError: it gives none, or, under ``copy=False``, not without a copy.
    """
    if isinstance(x, type) or not hasattr(type(x), "__array__"):
        return None
    import numpy

    options: dict[str, Any] = {}
    if copy is False:
        if numpy.lib.NumpyVersion(numpy.__version__) < "2.0.0":
            raise BufferError(
                f"Whether {type(x).__name__}.__array__ copies, only NumPy 2 can ask. Allow a copy "
                "with copy=None."
            )
        options = {"copy": False}
    try:
        return numpy.asarray(x, **options)
    except Exception as error:
        raise BufferError(f"{type(x).__name__}.__array__ gives no array: {error}") from error
