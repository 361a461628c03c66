# SPDX-License-Identifier: Apache-2.0
"""Packed images in, and back: the first and the last operator of style transfer.

Follows caffe2/operators/stylizer_ops.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.function_operator import RandomGenerator, operator
from bridge.caffe2.operators.base.checks import require


@operator(
    "PackedInt8BGRANHWCToNCHWCStylizerPreprocess", types={"x": (c10.uint8,)}, effects=("random",)
)
def stylizer_preprocess(
    x: Tensor,
    mean: Tensor,
    *,
    noise_std: float = 10.0,
    noise_size: int = 491,
    generator: RandomGenerator = None,
) -> Tensor:
    """Pixels (N, H, W, 4) of uint8, the last one ignored, minus mean (3), as (N, 3, H, W).

    Normal noise of `noise_std` is added, of which there are `noise_size` values, repeated.
    """
    require(x.dim() == 4 and x.shape[3] == 4, "X is (N, H, W, 4)", x)
    require(mean.numel() == 3, "there is a mean per color", mean)
    require(noise_size > 0, "noise_size is positive", noise_size)
    y = x[..., :3].float() - mean.reshape(3)
    y = y.movedim(3, 1).contiguous()
    if noise_std == 0:
        return y
    noise = torch.empty(noise_size, dtype=y.dtype, device=y.device)
    noise.normal_(0.0, noise_std, generator=generator)
    places = torch.arange(y.numel(), device=y.device) % noise_size
    return y + noise[places].view(y.shape)


@operator("BRGNCHWCToPackedInt8BGRAStylizerDeprocess")
def stylizer_deprocess(x: Tensor, mean: Tensor) -> Tensor:
    """X (N, 3, H, W) plus mean (3), from 0 to 255, as pixels (N, H, W, 4) of uint8, opaque."""
    require(x.dim() == 4 and x.shape[1] == 3, "X is (N, 3, H, W)", x)
    require(mean.numel() == 3, "there is a mean per color", mean)
    y = (x + mean.view(3, 1, 1)).clamp(0, 255).to(torch.uint8).movedim(1, 3)
    return torch.nn.functional.pad(y, (0, 1), value=255)
