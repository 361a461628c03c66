# SPDX-License-Identifier: Apache-2.0
"""Memory that ``__cuda_array_interface__`` describes (version 3), by way of torch."""

from __future__ import annotations

from typing import Any

__all__ = ["described"]


def described(x: Any) -> Any:
    """A torch tensor over the CUDA memory that `x` describes; shared.

    Raises BufferError: read-only or masked memory, which torch cannot express, or
    a description that makes no sense.
    """
    interface = x.__cuda_array_interface__
    if not isinstance(interface, dict):
        raise BufferError(
            f"{type(x).__name__}.__cuda_array_interface__ is {type(interface).__name__}, no dict."
        )
    if interface.get("mask") is not None:
        raise BufferError("A masked array has no plain memory for what is masked.")
    data = interface.get("data")
    if isinstance(data, tuple) and len(data) == 2 and data[1]:
        raise BufferError(
            f"The CUDA memory of {type(x).__name__} is read-only, which nothing but "
            "__cuda_array_interface__ says here. Give the bridge an object with __dlpack__."
        )
    import torch

    if not torch.cuda.is_available():
        raise BufferError("The memory is on a CUDA device, and torch.cuda.is_available() is False.")
    try:
        return torch.as_tensor(x, device="cuda")
    except (TypeError, ValueError, RuntimeError) as error:
        raise BufferError(
            f"{type(x).__name__}.__cuda_array_interface__ describes no array: {error}"
        ) from error
