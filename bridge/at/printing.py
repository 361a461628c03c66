# SPDX-License-Identifier: Apache-2.0
"""The elements of a tensor as text: as NumPy prints them, a large tensor by its edges."""

from __future__ import annotations

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    import numpy as np
    import torch

_PREFIX = "at.Tensor("
_KINDS_THAT_NUMPY_PRINTS = "?biufc"


def array_text(array: np.ndarray[Any, Any], tail: str) -> str:
    """Return the elements of an array as NumPy prints them, and `tail`.

    The sizes stand between, if elements were left out. ``numpy.set_printoptions`` holds.
    """
    import numpy as np

    sizes = list(array.shape)
    summarised = array.size > np.get_printoptions()["threshold"]
    if array.dtype.kind not in _KINDS_THAT_NUMPY_PRINTS or array.dtype.isbuiltin != 1:
        array = _as_builtin(_edges(array) if summarised else array)
    return _text(array, sizes, summarised, tail)


def torch_text(tensor: torch.Tensor, tail: str) -> str:
    """Return the elements of a torch tensor as `array_text` does, for a type that NumPy lacks.

    What is printed is copied to the host.
    """
    import numpy as np
    import torch

    sizes = list(tensor.shape)
    summarised = tensor.numel() > np.get_printoptions()["threshold"]
    if summarised:
        edge = _edge_items()
        for dim, size in enumerate(tensor.shape):
            if size > 2 * edge + 1:
                parts = tensor.narrow(dim, 0, edge + 1), tensor.narrow(dim, size - edge, edge)
                tensor = torch.cat([_plain(part) for part in parts], dim)
    return _text(_plain(tensor).cpu().numpy(), sizes, summarised, tail)


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor in a type that NumPy has and torch can put together."""
    import torch

    if tensor.dtype.is_complex:
        return tensor.to(torch.complex64) if tensor.dtype.itemsize < 8 else tensor
    if tensor.dtype.is_floating_point and tensor.dtype.itemsize < 4:
        return tensor.to(torch.float32)
    return tensor


def _edge_items() -> int:
    import numpy as np

    return int(np.get_printoptions()["edgeitems"])


def _edges(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return what is printed of an array, and one more in each dimension, where "..." stands."""
    import numpy as np

    edge = _edge_items()
    for dim, size in enumerate(array.shape):
        if size > 2 * edge + 1:
            array = array.take([*range(edge + 1), *range(size - edge, size)], axis=dim)
    return np.asarray(array)


def _as_builtin(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values of a type of ml_dtypes in one of NumPy's own."""
    import numpy as np

    name = array.dtype.name
    kind = np.complex64 if "complex" in name else np.int64 if "int" in name else np.float32
    with np.errstate(all="ignore"):
        return array.astype(kind)


def _text(array: np.ndarray[Any, Any], sizes: list[int], summarised: bool, tail: str) -> str:
    import numpy as np

    if summarised:
        tail = f", sizes={sizes}{tail}"
    threshold = 0 if summarised else array.size
    with np.errstate(all="ignore"):
        text = np.array2string(array, separator=", ", prefix=_PREFIX, threshold=threshold)
    last = text.rpartition("\n")[2] if "\n" in text else _PREFIX + text
    if len(last) + len(tail) <= np.get_printoptions()["linewidth"]:
        return text + tail
    return f"{text},\n{' ' * len(_PREFIX)}{tail[2:]}"
