# SPDX-License-Identifier: Apache-2.0
"""``convert(x, like=y)`` goes to the device of y, and back."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import bridge


@pytest.mark.cuda
def test_goes_to_the_gpu() -> None:
    x = np.arange(16, dtype=np.float32)
    like = torch.zeros(1, device="cuda")
    out = bridge.convert([x], like=like)[0]
    assert out.device == like.device
    assert bridge.convert(out, like=x).tolist() == x.tolist()
    assert bridge.convert(out, like=torch.zeros(1)).device.type == "cpu"
    with pytest.raises(BufferError, match="needs a copy"):
        bridge.convert(x, like=like, copy=False)
