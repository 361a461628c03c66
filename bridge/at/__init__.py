# SPDX-License-Identifier: Apache-2.0
"""The ATen-style API: at.Tensor, its factories, and every function of torch.

``at.<name>`` that is not here is ``torch.<name>``, run on the same memory, with
at.Tensors for what it takes and gives; ``torch.nn.functional`` is looked into, too.
"""

from __future__ import annotations

from typing import Any

from bridge.at import data as _data
from bridge.at import torch_ops as _torch_ops
from bridge.at.factories import (
    empty,
    empty_like,
    empty_strided,
    from_blob,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from bridge.at.tensor import Tensor
from bridge.at.torch_factories import arange, eye, rand, randn, tensor

__all__ = [
    "Tensor",
    "arange",
    "empty",
    "empty_like",
    "empty_strided",
    "eye",
    "from_blob",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "rand",
    "randn",
    "tensor",
    "zeros",
    "zeros_like",
]

_data.set_wrap(Tensor._wrap)
_torch_ops.set_hooks(
    Tensor._wrap, _data.write_back, _data.mark_readonly, _data.mark_owned, _data.take_metadata
)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'bridge.at' has no attribute {name!r}")
    return _torch_ops.function(name)
