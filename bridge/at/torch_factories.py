# SPDX-License-Identifier: Apache-2.0
"""Factories whose values torch computes: arange, eye, rand, randn, tensor."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.at.factories import page_locked, resolved, sizes_of, split
from bridge.at.tensor import Tensor
from bridge.at.torch_defaults import default_type
from bridge.c10 import reports
from bridge.c10.device import Device, DeviceType
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.options import TensorOptions, as_options
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.torch_devices import lacks_memory
from bridge.wrapper import Wrapper


def _keywords(options: TensorOptions, caller: str) -> dict[str, Any]:
    """Return the options as keywords of torch."""
    named: dict[str, Any] = {}
    dtype = options.dtype()
    if dtype is not None:
        if dtype.torch is None:
            raise EnforceTypeError(f"torch has no element type {dtype}.", caller)
        named["dtype"] = dtype.torch
    # always passed: a program may change torch's defaults
    device = options.device()
    named["device"] = "cpu" if device is None or device == "cuda_host" else str(device)
    return named


def _computed(name: str, args: tuple[Any, ...], options: TensorOptions) -> Tensor:
    import torch

    caller = f"at.{name}"
    keywords, page_locked = _keywords(options, caller), _page_locked(options)
    try:
        result = getattr(torch, name)(*args, **keywords)
    except TypeError as error:
        raise EnforceTypeError(str(error), caller) from error
    except (ValueError, RuntimeError) as error:
        if lacks_memory(error):
            raise MemoryError(f"{caller}: {error}") from error
        raise EnforceValueError(str(error), caller) from error
    # copied into memory of the current allocator, as every other factory uses
    return Tensor._wrap(import_tensor(result, page_locked, True))


def _page_locked(options: TensorOptions) -> Device | None:
    """Return the device of page-locked memory if options specify it, else None."""
    if options.pinned_memory():
        options = resolved(options)  # raises if the device is not the host
    return Device("cuda_host") if options.device() == "cuda_host" else None


def _pinned(options: TensorOptions, keywords: dict[str, Any], caller: str) -> TensorOptions:
    """Return the options with what keywords of torch's factories ask for, as `at.empty` takes."""
    if not page_locked(keywords, options.pinned_memory(), caller):
        return options
    pinned: TensorOptions = options.pinned_memory(True)
    return pinned


def _with_options(
    args: tuple[Any, ...], dtype: Any, device: Any
) -> tuple[tuple[Any, ...], TensorOptions]:
    """Return the positional numbers, and the options that may follow them."""
    last = args[-1] if args else 0
    if isinstance(last, DeviceType):  # which is an int, too
        specifies = len(args) > 1
    elif isinstance(last, (bool, int, float, complex, tuple, list, Wrapper)):
        specifies = False
    else:
        specifies = isinstance(last, str) or not hasattr(last, "__len__")
    if specifies:
        return args[:-1], as_options(last, dtype, device)
    return args, as_options(None, dtype, device)


def arange(*args: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Tensor:
    """Return the numbers from `start` to before `end`, `step` apart; 1-D.

    ``arange(end)``, ``arange(start, end)``, ``arange(start, end, step)``, each followed by options.
    The default type is int64 for ints and float32 for floats, as in torch.

    Raises EnforceNotMet, also a ValueError: `step` is zero or leads away from `end`. Also a
    TypeError: an argument is not a number.

    >>> from bridge import at
    >>> at.arange(3).tolist(), at.arange(1, 2, 0.5, "float64").tolist()
    ([0, 1, 2], [1.0, 1.5])
    """
    args, options = _with_options(args, dtype, device)
    if not options.has_dtype() and any(isinstance(one, float) for one in args):
        options = options.dtype("float32")
    return _computed("arange", args, _pinned(options, keywords, "at.arange"))


def eye(*args: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Tensor:
    """Return the (n, m) matrix with ones on the diagonal: ``eye(n)``, ``eye(n, m)``, then options.

    Raises EnforceNotMet, also a ValueError: a negative size.

    >>> from bridge import at
    >>> at.eye(2, 3).tolist()
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    args, options = _with_options(args, dtype, device)
    if not options.has_dtype():
        options = options.dtype("float32")
    return _computed("eye", args, _pinned(options, keywords, "at.eye"))


def _sized(
    name: str, dims: tuple[Any, ...], dtype: Any, device: Any, keywords: dict[str, Any]
) -> Tensor:
    sizes, options = split(dims, f"at.{name}")
    chosen = as_options(options, dtype, device)
    if not chosen.has_dtype():
        chosen = chosen.dtype("float32")
    chosen = _pinned(chosen, keywords, f"at.{name}")
    return _computed(name, (tuple(sizes_of(sizes, f"at.{name}")),), chosen)


def rand(*dims: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Tensor:
    """Return uniform random numbers from [0, 1); arguments and errors as in `empty`.

    The generator is that of torch, which torch.manual_seed sets.

    >>> from bridge import at
    >>> x = at.rand(2, 3)
    >>> x.sizes(), x.dtype(), 0 <= x.min().item() <= x.max().item() < 1
    (ArrayRef([2, 3]), TypeMeta('float32'), True)
    """
    return _sized("rand", dims, dtype, device, keywords)


def randn(*dims: Any, dtype: Any = None, device: Any = None, **keywords: Any) -> Tensor:
    """Return normally distributed random numbers of mean 0 and variance 1; otherwise as `rand`.

    >>> from bridge import at
    >>> at.randn(2, 3, "float64").dtype()
    TypeMeta('float64')
    """
    return _sized("randn", dims, dtype, device, keywords)


def tensor(
    data: Any, options: Any = None, *, dtype: Any = None, device: Any = None, **keywords: Any
) -> Tensor:
    """Return a new tensor with a copy of `data`: a number, nested lists, or any tensor.

    The default type is inferred as in torch: Python floats become float32.

    Raises EnforceNotMet, also a ValueError: a ragged list, or elements that are not numbers. Also a
    TypeError: options that are not recognized.

    >>> from bridge import at
    >>> at.tensor([[1, 2], [3, 4]]), at.tensor(0.5)
    (at.Tensor([[1, 2],
               [3, 4]], dtype=int64), at.Tensor(0.5, dtype=float32))
    """
    chosen = _pinned(as_options(options, dtype, device), keywords, "at.tensor")
    if not (isinstance(data, Wrapper) or hasattr(data, "__dlpack__")):
        if not chosen.has_dtype():
            inferred = default_type(data)
            chosen = chosen if inferred is None else chosen.dtype(inferred)
        return _computed("tensor", (data,), chosen)
    if reports.outermost():
        return reports.observe_call("at.tensor", data, "at.Tensor", _copied, data, chosen)
    return _copied(data, chosen)


def _copied(data: Any, options: TensorOptions) -> Tensor:
    copied = Tensor._wrap(import_tensor(data, None, True))
    if options.has_dtype() or options.has_device():
        copied = copied.to(options)
    return copied if _page_locked(options) is None else copied.pin_memory()
