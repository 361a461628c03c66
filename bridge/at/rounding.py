# SPDX-License-Identifier: Apache-2.0
"""``round(x, ndigits)`` for every element type that has numbers."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import torch


def rounded(tensor: torch.Tensor, ndigits: int | None) -> torch.Tensor:
    """Return a new tensor with each element rounded half to even, as ``round`` does with numbers.

    The element type stays, also without `ndigits`. torch.round takes neither bool nor complex
    elements, nor digits with integers.
    """
    import torch

    digits = 0 if ndigits is None else int(ndigits)
    if tensor.is_floating_point():
        return torch.round(tensor, decimals=digits)
    if tensor.is_complex():
        return torch.complex(
            torch.round(tensor.real, decimals=digits), torch.round(tensor.imag, decimals=digits)
        )
    if digits >= 0 or tensor.dtype == torch.bool:
        return tensor.clone()
    unit = 10**-digits
    if unit > torch.iinfo(tensor.dtype).max:
        return torch.zeros_like(tensor)
    above = torch.remainder(tensor, unit)
    down = tensor - above
    odd = torch.remainder(torch.floor_divide(down, unit), 2) == 1
    # `above > unit - above`: twice `above` may overflow
    up = (above > unit - above) | ((above == unit - above) & odd)
    return torch.where(up, down + unit, down)
