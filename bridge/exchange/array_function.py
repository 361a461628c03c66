# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions on the bridge's tensors (NEP 18): they compute on the shared memory."""

from __future__ import annotations

from bridge.c10.handle import Handle
from bridge.exchange.conversion import export_source
from bridge.exchange.numpy import export_array

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

__all__ = ["call_numpy"]


def call_numpy(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what `function` of NumPy gives for arrays of the same memory in place of tensors.

    Tensors whose memory NumPy cannot hold, such as those on a device, are left to NumPy.
    """
    found: list[Handle] = []
    try:
        plain_args = _with_arrays(args, found)
        plain_kwargs = {name: _with_arrays(value, found) for name, value in kwargs.items()}
    except BufferError:
        found.clear()
    if not found:
        # NumPy saw tensors elsewhere: in another container, or in `like`, which it has removed and
        # whose functions have no other implementation
        return getattr(function, "_implementation", function)(*args, **kwargs)
    return function(*plain_args, **plain_kwargs)


def _with_arrays(x: Any, found: list[Handle]) -> Any:
    """Return `x` with an array for each tensor in it, which is added to `found`."""
    if isinstance(x, Handle):
        found.append(x)
        return export_array(export_source(x, None), "__array_function__")
    if type(x) is list:
        return [_with_arrays(item, found) for item in x]
    if type(x) is tuple:
        return tuple(_with_arrays(item, found) for item in x)
    return x
