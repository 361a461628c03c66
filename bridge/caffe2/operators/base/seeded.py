# SPDX-License-Identifier: Apache-2.0
"""Seeded: operators that draw random numbers."""

from __future__ import annotations

from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["Seeded"]


class Seeded(TorchOperator):
    """An operator with a generator of its own, if ``device_option.random_seed`` is given."""

    _generator: Any = None

    def generator(self) -> Any:
        """Return the generator of the operator's seed, made once; None: torch's own."""
        seed = self._definition.random_seed
        if seed is not None and self._generator is None:
            self._generator = torch.Generator()
            self._generator.manual_seed(seed)
        return self._generator
