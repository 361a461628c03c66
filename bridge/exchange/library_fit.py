# SPDX-License-Identifier: Apache-2.0
"""What exporters of libraries share: tensors that a library can hold, and refusals."""

from __future__ import annotations

from typing import Any


def fit(tensor: Any, *, writable: bool = False, row_major: bool = False) -> Any:
    """Return the at.Tensor `tensor`, or a copy that the library can hold.

    `writable`: read-only memory is copied, since the library would lose the flag. `row_major`:
    other strides are copied; else only negative ones. The caller of the exporter finds out that
    it is a copy (see `fresh_memory`).
    """
    if row_major or any(step < 0 for step in tensor.strides()):
        tensor = tensor.contiguous()
    return tensor.clone() if writable and tensor.readonly else tensor


def plain_array(tensor: Any, name: str) -> Any:
    """Return the NumPy array of `tensor`, if its type is one of NumPy's own.

    Raises BufferError: it is another type, such as bfloat16, or not in host memory.
    """
    array = tensor.numpy()
    if array.dtype.isbuiltin != 1:
        raise BufferError(
            f"{name} has no elements of {tensor.dtype()}. Convert it first, as with to('float32')."
        )
    return array


def refuse_types(tensor: Any, name: str, *types: str) -> None:
    """Raise BufferError if the elements are of one of `types`, which the library would change."""
    if tensor.dtype().name in types:
        raise BufferError(
            f"{name} does not keep elements of {tensor.dtype()}. Convert it first, as with "
            "to('float32')."
        )


def refuse_nulls(what: str, nulls: int, advice: str) -> None:
    """Raise BufferError if `what` has `nulls` missing values; `advice`: the calls that end them."""
    if nulls:
        plural = "" if nulls == 1 else "s"
        raise BufferError(
            f"The {what} has {nulls} null{plural}, which plain memory cannot hold. Use {advice}."
        )
