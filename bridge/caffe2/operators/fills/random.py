# SPDX-License-Identifier: Apache-2.0
"""Fills with random numbers from a generator seeded by ``device_option.random_seed``.

The numbers have Caffe2's distributions, but are torch's. Operators without a seed draw from torch's
default generator, which ``torch.manual_seed`` seeds.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.fill_operator import FillOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.random_operator import RandomOperator
from bridge.caffe2.operators.base.torch_operator import enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


class _Random(RandomOperator, FillOperator):
    """A fill from the operator's generator."""

    def fan(self, sizes: list[int], i: int) -> int:
        """Return the number of elements per index of dimension `i`."""
        enforce(len(sizes) > i, f"The sizes {sizes} have no dimension {i}.")
        enforce(sizes[i] > 0, f"Dimension {i} of the sizes {sizes} must not be empty.")
        return int(torch.Size(sizes).numel()) // sizes[i]


class _Uniform(_Random):
    """A uniform fill from `min` to `max`, which are arguments or inputs 1 and 2."""

    dtype: TypeMeta = c10.float32
    zero: float = 0.0

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        if self.InputSize() == 3:
            for name in ("min", "max"):
                enforce(
                    not self.HasArgument(name),
                    f"{name} is an argument or an input, not both.",
                )
            return
        self._limits = self._argument("min", 0), self._argument("max", 1)
        low, high = self._limits
        if not low < high:
            raise EnforceValueError(
                f"max, {high}, has to be greater than min, {low}.", condition="min_ < max_"
            )

    def _argument(self, name: str, default: int) -> Any:
        return self.GetSingleArgument(name, type(self.zero)(default))

    def RunOnDevice(self) -> None:
        sizes = list(self.sizes())
        if self.InputSize() == 3:
            self._limits = self._limit(1), self._limit(2)
        low, high = self._limits
        if low > high:
            sizes[0] = 0
        self.draw(self.out(0, sizes, self.dtype), low, high)

    def _limit(self, i: int) -> Any:
        given = self.x(i, (self.dtype,))
        enforce(
            given.numel() == 1, f"Input {i}, a limit, must have one element, not {given.numel()}."
        )
        return given.item()

    def draw(self, out: Any, low: Any, high: Any) -> None:
        """Fill `out` from `low` to `high`."""
        if out.numel():
            out.uniform_(low, high, generator=self.generator())


@register_operator("UniformFill")
class UniformFill(_Uniform):
    """Fill uniformly from [`min`, `max`)."""


@register_operator("UniformIntFill")
class UniformIntFill(_Uniform):
    """Fill with int32 uniformly from [`min`, `max`]."""

    dtype = c10.int32
    zero = 0

    def draw(self, out: Any, low: Any, high: Any) -> None:
        """Fill `out` from `low` to `high`, inclusive."""
        if out.numel():
            out.random_(low, high + 1, generator=self.generator())


@register_operator("Float16UniformFill")
class Float16UniformFill(_Random):
    """Fill with float16 uniformly from [`min`, `max`)."""

    def RunOnDevice(self) -> None:
        low, high = (
            self.GetSingleArgument(name, float(i)) for i, name in enumerate(("min", "max"))
        )
        enforce(low < high, f"max, {high}, has to be greater than min, {low}.")
        drawn = torch.empty(torch.Size(self.sizes())).uniform_(
            low, high, generator=self.generator()
        )
        self.put(0, drawn.half())


@register_operator("GaussianFill")
class GaussianFill(_Random):
    """Fill from a normal distribution with `mean` (0) and standard deviation `std` (1)."""

    def RunOnDevice(self) -> None:
        mean, std = self.GetSingleArgument("mean", 0.0), self.GetSingleArgument("std", 1.0)
        enforce(std >= 0, f"The standard deviation must not be negative: {std}.")
        self.out(0, self.sizes(), c10.float32).normal_(mean, std, generator=self.generator())


@register_operator("XavierFill")
class XavierFill(_Random):
    """Fill uniformly from [-s, s], s = sqrt(3 / fan in), with fan in = numel / size 0."""

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        fan = self.fan(sizes, 0)
        scale = (3 / fan) ** 0.5 if fan else 0.0
        out = self.out(0, sizes, c10.float32)
        out.uniform_(-scale, scale, generator=self.generator())


@register_operator("MSRAFill")
class MSRAFill(_Random):
    """Fill from a normal distribution with deviation sqrt(2 / fan out): numel / size 1."""

    def RunOnDevice(self) -> None:
        sizes = self.sizes()
        fan = self.fan(sizes, 1)
        scale = (2 / fan) ** 0.5 if fan else 0.0
        self.out(0, sizes, c10.float32).normal_(0.0, scale, generator=self.generator())


@register_operator("UniqueUniformFill")
class UniqueUniformFill(_Random):
    """Fill with different integers from [`min`, `max`], excluding those of input 1."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._dtype = type_of_argument(self.GetSingleArgument("dtype", 2), "dtype")
        enforce(
            self._dtype in (c10.int32, c10.int64),
            f"UniqueUniformFill supports int32 and int64, not {self._dtype.name}.",
        )
        for name in ("min", "max"):
            enforce(self.HasSingleArgumentOfType(name, int), f"The argument {name} is missing.")
        self._low, self._high = self.GetSingleArgument("min", 0), self.GetSingleArgument("max", 0)
        enforce(
            self._low < self._high,
            f"max, {self._high}, has to be greater than min, {self._low}.",
        )

    def RunOnDevice(self) -> None:
        sizes = torch.Size(self.sizes())
        avoid = set(self.integers(1, (self._dtype,))) if self.InputSize() >= 2 else set()
        inside = sum(self._low <= one <= self._high for one in avoid)
        available = self._high - self._low + 1 - inside
        if sizes.numel() > available:
            raise EnforceNotMet(
                f"{sizes.numel()} different integers are requested, but from {self._low} to "
                f"{self._high} there are {available}.",
                condition="n <= b - a + 1 - m",
            )
        drawn: dict[int, None] = {}
        while len(drawn) < sizes.numel():
            # Draw more than are missing, until there are enough different ones.
            some = torch.randint(
                self._low,
                self._high + 1,
                (2 * (sizes.numel() - len(drawn)) + 8,),
                generator=self.generator(),
            )
            drawn.update((one, None) for one in some.tolist() if one not in avoid)
        taken = list(drawn)[: sizes.numel()]
        self.put(0, torch.tensor(taken, dtype=self._dtype.torch).reshape(sizes))
