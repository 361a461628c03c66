# SPDX-License-Identifier: Apache-2.0
"""The extension ``fft`` of the array API standard."""

from __future__ import annotations

import torch

from bridge.at.array_api.running import named, on_memory

TYPE_CHECKING = False
if TYPE_CHECKING:  # the names of this module are public
    from collections.abc import Callable, Sequence
    from typing import Any

# The transforms along one axis, and along several.
_ONE = ("fft", "ifft", "rfft", "irfft", "hfft", "ihfft")
_MANY = ("fftn", "ifftn", "rfftn", "irfftn")

__all__ = [*_ONE, *_MANY, "fftfreq", "fftshift", "ifftshift", "rfftfreq"]


def _along_one(name: str) -> Callable[..., Any]:
    run = getattr(torch.fft, name)

    def function(
        x: torch.Tensor, /, *, n: int | None = None, axis: int = -1, norm: str = "backward"
    ) -> Any:
        return run(x, n=n, dim=axis, norm=norm)

    return named(function, name, f"Return ``torch.fft.{name}`` of the array along `axis`.")


def _along_many(name: str) -> Callable[..., Any]:
    run = getattr(torch.fft, name)

    def function(
        x: torch.Tensor,
        /,
        *,
        s: Sequence[int] | None = None,
        axes: Sequence[int] | None = None,
        norm: str = "backward",
    ) -> Any:
        return run(x, s=s, dim=axes, norm=norm)

    return named(function, name, f"Return ``torch.fft.{name}`` of the array along `axes`.")


for _name in _ONE:
    globals()[_name] = _along_one(_name)
for _name in _MANY:
    globals()[_name] = _along_many(_name)


@on_memory
def _frequencies(run: Any, n: int, d: float, dtype: Any, device: Any) -> Any:
    own = torch.float32 if dtype is None else dtype
    return run(n, d=d, dtype=own, device="cpu" if device is None else device)


def fftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `fft` of `n` samples that are `d` apart."""
    return _frequencies(torch.fft.fftfreq, n, d, dtype, device)


def rfftfreq(n: int, /, *, d: float = 1.0, dtype: Any = None, device: Any = None) -> Any:
    """Return the frequencies of `rfft` of `n` samples that are `d` apart."""
    return _frequencies(torch.fft.rfftfreq, n, d, dtype, device)


@on_memory
def fftshift(x: torch.Tensor, /, *, axes: int | Sequence[int] | None = None) -> Any:
    """Return the array with the zero frequency in the middle of `axes`."""
    return torch.fft.fftshift(x, dim=axes)


@on_memory
def ifftshift(x: torch.Tensor, /, *, axes: int | Sequence[int] | None = None) -> Any:
    """Return the array with the zero frequency at the begin of `axes`, undoing `fftshift`."""
    return torch.fft.ifftshift(x, dim=axes)
