# SPDX-License-Identifier: Apache-2.0
"""Factories whose values torch computes; the memory is torch's, taken over as it is."""

from __future__ import annotations

from bridge.at.factories import sizes_of, split
from bridge.at.tensor import Tensor
from bridge.c10 import observe
from bridge.c10.device import Device
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.options import TensorOptions, as_options
from bridge.exchange.import_tensor import import_tensor
from bridge.wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["arange", "eye", "rand", "randn", "tensor"]


def _keywords(options: TensorOptions, caller: str) -> dict[str, Any]:
    """The options in torch's keywords."""
    named: dict[str, Any] = {}
    dtype = options.dtype()
    if dtype is not None:
        if dtype.torch is None:
            raise EnforceTypeError(f"torch has no element type {dtype}.", caller)
        named["dtype"] = dtype.torch
    # said always: torch's own defaults, which a program may change, are not ours
    device = options.device()
    named["device"] = "cpu" if device is None or device == "cuda_host" else str(device)
    return named


def _made(name: str, args: tuple[Any, ...], options: TensorOptions) -> Tensor:
    import torch

    caller = f"at.{name}"
    keywords = _keywords(options, caller)
    try:
        made = getattr(torch, name)(*args, **keywords)
    except TypeError as error:
        raise EnforceTypeError(str(error), caller) from error
    except (ValueError, RuntimeError) as error:
        raise EnforceValueError(str(error), caller) from error
    # into memory of the allocator in force, as that of every other factory
    return Tensor._wrap(import_tensor(made, _place(options), True))


def _place(options: TensorOptions) -> Device | None:
    """Where to take what torch made: page-locked memory, which is a device of its own here."""
    device = options.device()
    if device == "cuda_host" or (options.pinned_memory() and (device is None or device == "cpu")):
        return Device("cuda_host")
    return None


def _with_options(
    args: tuple[Any, ...], dtype: Any, device: Any
) -> tuple[tuple[Any, ...], TensorOptions]:
    """Split trailing options from positional numbers or sizes."""
    if args and not isinstance(args[-1], (bool, int, float, complex, tuple, list)):
        if isinstance(args[-1], Wrapper) or (
            hasattr(args[-1], "__len__") and not isinstance(args[-1], str)
        ):
            return args, as_options(None, dtype, device)
        return args[:-1], as_options(args[-1], dtype, device)
    from bridge.c10.device import DeviceType

    if len(args) > 1 and isinstance(args[-1], DeviceType):
        return args[:-1], as_options(args[-1], dtype, device)
    return args, as_options(None, dtype, device)


def arange(*args: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``, then options.

    1-D; int64 for ints and float32 for floats, as torch has it, unless options name
    a type.

    >>> from bridge import at
    >>> at.arange(3).tolist()
    [0, 1, 2]
    """
    args, options = _with_options(args, dtype, device)
    if not options.has_dtype() and any(isinstance(one, float) for one in args):
        options = options.dtype("float32")
    return _made("arange", args, options)


def eye(*args: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """``eye(n)``, ``eye(n, m)``, then options: (n, m) with ones on the diagonal."""
    args, options = _with_options(args, dtype, device)
    if not options.has_dtype():
        options = options.dtype("float32")
    return _made("eye", args, options)


def _sized(name: str, dims: tuple[Any, ...], dtype: Any, device: Any) -> Tensor:
    sizes, options = split(dims, f"at.{name}")
    chosen = as_options(options, dtype, device)
    if not chosen.has_dtype():
        chosen = chosen.dtype("float32")
    return _made(name, (tuple(sizes_of(sizes, f"at.{name}")),), chosen)


def rand(*dims: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Uniform numbers from [0, 1) of torch's generator; sizes, then options."""
    return _sized("rand", dims, dtype, device)


def randn(*dims: Any, dtype: Any = None, device: Any = None) -> Tensor:
    """Normal numbers of mean 0 and variance 1 of torch's generator; sizes, then options."""
    return _sized("randn", dims, dtype, device)


def tensor(data: Any, options: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A new tensor with a copy of `data`: numbers, nested lists, or any tensor.

    The type is inferred as torch does it (floats are float32) unless options name one.

    >>> from bridge import at
    >>> at.tensor([[1, 2], [3, 4]]).dtype()
    TypeMeta('int64')
    """
    chosen = as_options(options, dtype, device)
    if not (isinstance(data, Wrapper) or hasattr(data, "__dlpack__")):
        return _made("tensor", (data,), chosen)
    if observe.outermost():
        return observe.watch("at.tensor", data, "at.Tensor", _copied, data, chosen)
    return _copied(data, chosen)


def _copied(data: Any, options: TensorOptions) -> Tensor:
    copied = Tensor._wrap(import_tensor(data, None, True))
    if options.has_dtype() or options.has_device():
        copied = copied.to(options)
    return copied if _place(options) is None else copied.pin_memory()
