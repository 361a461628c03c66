# SPDX-License-Identifier: Apache-2.0
"""RandomOperator: the base class of operators that draw random numbers."""

from __future__ import annotations

from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import TorchOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RandomOperator"]


class RandomOperator(TorchOperator):
    """An operator with its own generator if ``device_option.random_seed`` is set."""

    _generator: Any = None

    def generator(self) -> Any:
        """Return the generator seeded for this operator, or None for torch's default one."""
        seed = self._definition.random_seed
        if seed is not None and self._generator is None:
            self._generator = torch.Generator()
            self._generator.manual_seed(seed)
        return self._generator
