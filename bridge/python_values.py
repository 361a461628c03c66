# SPDX-License-Identifier: Apache-2.0
"""From Python numbers, nested lists and strings to at.Tensor, with NumPy's rules for types."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from bridge.annotation import Any
from bridge.at.tensor import Tensor
from bridge.c10.device import Device
from bridge.c10.reports import report_copy
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.nested_strings import first_leaf, import_strings
from bridge.exchange.protocols import has_door


def as_tensor(x: Any, dtype: Any, device: Any, copy: bool | None) -> Tensor:
    """Return an at.Tensor of a tensor of any library, or of Python values; see bridge.asarray."""
    if is_strings(x, dtype):
        return tensor_of_strings(x, device, copy)
    if is_numbers(x):
        if copy is False:
            raise BufferError(
                f"{type(x).__name__} has no tensor's memory, so it is copied. Allow it with "
                "copy=None."
            )
        return tensor_of_numbers(x, dtype, device)
    try:
        tensor = Tensor._wrap(import_tensor(x, device, copy))
    except TypeError:
        if isinstance(x, type) or not isinstance(x, Sequence) or has_door(x):
            raise
        return as_tensor(list(x), dtype, device, copy)
    except BufferError:
        strings = strings_of(x)
        if strings is None:
            raise
        return tensor_of_strings(strings, device, copy)
    if dtype is None:
        return tensor
    wanted = TypeMeta.Make(dtype)
    if copy is False and wanted is not tensor.dtype():
        raise BufferError(
            f"Converting {tensor.dtype()} to {wanted} needs a copy. Allow it with copy=None."
        )
    return tensor.to(dtype=wanted)


# Parts of the names of types whose elements may be strings.
_STRING_TYPES = ("str", "utf8", "object", "category")


def strings_of(x: Any) -> list[Any] | None:
    """Return the strings of an array, column or series of strings as lists; None if it is none.

    Raises BufferError: it has nulls.
    """
    dtype = str(_attribute(x, "dtype") or _attribute(x, "type")).lower()
    if "dictionary" in dtype or not any(part in dtype for part in _STRING_TYPES):
        return None
    for name in ("to_pylist", "to_list", "tolist"):
        method = getattr(x, name, None)
        if callable(method):
            values = method()
            break
    else:
        if not hasattr(type(x), "__array__"):
            return None
        import numpy

        values = numpy.asarray(x).tolist()
    if not isinstance(values, list):
        return None
    kinds = [_kind(leaf) for leaf in _leaves(values)]
    nulls = kinds.count("null")
    if "string" not in kinds or "other" in kinds:
        return None
    if nulls:
        raise BufferError(
            f"The strings of this {type(x).__name__} have {nulls} null{'' if nulls == 1 else 's'}. "
            "Fill them first, as with its fillna(value) or fill_null(value)."
        )
    return values


def _kind(leaf: Any) -> str:
    if isinstance(leaf, (str, bytes)):
        return "string"
    missing = leaf is None or type(leaf).__name__ == "NAType" or leaf != leaf
    return "null" if missing is True else "other"


def _leaves(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _leaves(value)
        else:
            yield value


def _attribute(x: Any, name: str) -> Any:
    """Return an attribute of an object of any library; None if it has none or fails."""
    try:
        return getattr(x, name, None)
    except Exception:  # noqa: BLE001  a closed file, a placeholder: its own door names the fault
        return None


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
    if getattr(_attribute(x, "dtype"), "kind", "") in ("S", "U") and hasattr(x, "tolist"):
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
    meta = None if dtype is None else TypeMeta.Make(dtype)
    try:
        array = numpy.array(x, dtype=None if meta is None else meta.numpy)
    except OverflowError as error:
        raise ValueError(f"A value does not fit {meta}: {error}") from error
    except RuntimeError as error:
        raise BufferError(
            f"NumPy cannot read the elements of this {type(x).__name__}; of tensors that require "
            f"grad give tensor.detach(). NumPy says: {error}"
        ) from error
    if array.dtype.kind not in "biufcV" or array.dtype.names is not None:
        raise TypeError(
            f"NumPy makes {array.dtype} of this {type(x).__name__}, which is not a numeric type. "
            "Give numbers only, of 64 bits at most, or strings only."
        )
    report_copy(array.nbytes, "Python numbers have no tensor's memory")
    # copied once more, into memory of the bridge: aligned, and of the current allocator
    copied = Tensor._wrap(import_tensor(array)).clone()
    return copied if device is None else copied.to(device)
