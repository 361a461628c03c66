# SPDX-License-Identifier: Apache-2.0
"""einops takes at.Tensors: rearrange, reduce, repeat, einsum, pack and unpack.

Views are views of the same memory where einops makes views of a torch tensor.
"""

from __future__ import annotations

from typing import Any

from bridge.at.tensor import Tensor
from bridge.front import asarray

_backends: list[Any] = []  # a class does not keep those alive that derive from it


def register() -> None:
    """Define einops' backend for at.Tensor; einops finds the classes that derive from its own."""
    from einops._backends import TorchBackend

    class BridgeBackend(TorchBackend):  # type: ignore[misc,unused-ignore]
        """As for torch's tensors: torch's functions take at.Tensors and return them."""

        framework_name = "bridge"

        def is_appropriate_type(self, tensor: Any) -> bool:
            """Return whether `tensor` is an at.Tensor."""
            return isinstance(tensor, Tensor)

        def from_numpy(self, x: Any) -> Tensor:
            """Return an at.Tensor of the memory of an array."""
            return asarray(x)

        def to_numpy(self, x: Tensor) -> Any:
            """Return an array of the memory of `x`, or of a copy on the host."""
            return x.cpu().numpy()

        def arange(self, start: int, stop: int) -> Tensor:
            """Return the numbers from `start` to before `stop`."""
            from bridge.at.torch_factories import arange

            return arange(start, stop)

    _backends.append(BridgeBackend)
