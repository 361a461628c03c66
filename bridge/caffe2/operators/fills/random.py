# SPDX-License-Identifier: Apache-2.0
"""Fills with random numbers from a generator seeded by ``device_option.random_seed``, and samples.

The numbers have Caffe2's distributions, but are torch's. Operators without a seed draw from torch's
default generator, which ``torch.manual_seed`` seeds. Follows weighted_sample_op.cc,
weighted_multi_sampling_op.cc and sparse_dropout_with_replacement_op.cc in caffe2/operators, PyTorch
1.8.1.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import (
    OperatorType,
    Out,
    OutputCount,
    RandomGenerator,
    TargetDevice,
    operator,
)
from bridge.caffe2.operators.base.checks import INTS, require, require_all
from bridge.caffe2.operators.base.rows_and_segments import check_lengths
from bridge.caffe2.operators.fills.values import FILL, FillSizes, room


class Limits:
    """The arguments `min` (0) and `max` (1), unless they are inputs 1 and 2.

    Raises EnforceNotMet: they are inputs too; also a TypeError: they are of another type; also a
    ValueError: `max` is not greater than `min`.
    """

    takes = "Scalar min, Scalar max"

    def __init__(self, arguments: Arguments) -> None:
        if arguments.inputs == 3:
            for name in ("min", "max"):
                require(not arguments.has(name), f"{name} is an argument or an input, not both")
            return
        kind = int if arguments.type == "UniformIntFill" else float
        low, high = arguments.single("min", kind(0)), arguments.single("max", kind(1))
        if not low < high:
            raise EnforceValueError(
                f"max, {high}, has to be greater than min, {low}.", condition="min_ < max_"
            )
        self.low, self.high = low, high

    def between(self, least: Tensor | None, most: Tensor | None, dtype: Any) -> tuple[Any, Any]:
        """Return the limits, from inputs if they are given."""
        if least is None or most is None:
            return self.low, self.high
        for name, x in (("min", least), ("max", most)):
            require(x.dtype == dtype, f"input {name} is of type {dtype}", x.dtype)
            require(x.numel() == 1, f"input {name} has one element", x)
        return least.item(), most.item()


@operator("UniformFill", **FILL, inputs="0|1|3", effects=("random",))
@operator("UniformIntFill", **FILL, inputs="0|1|3", effects=("random",))
def uniform_fill(
    x: Tensor | None = None,
    least: Tensor | None = None,
    most: Tensor | None = None,
    *,
    sizes: FillSizes,
    limits: Limits,
    kind: OperatorType,
    generator: RandomGenerator = None,
    device: TargetDevice = "cpu",
) -> Tensor:
    """Fill uniformly from [`min`, `max`), or with int32 from [`min`, `max`].

    The limits are arguments or inputs 1 and 2.
    """
    dtype = torch.int32 if kind == "UniformIntFill" else torch.float32
    made = list(sizes.of(x))
    low, high = limits.between(least, most, dtype)
    if low > high:
        made[0] = 0
        high = low
    if dtype is torch.float32:
        return room(made, dtype, device, None).uniform_(low, high, generator=generator)
    if torch.compiler.is_compiling():  # which does not trace `random_`
        return torch.randint(low, high + 1, made, dtype=dtype, device=device)
    return room(made, dtype, device, None).random_(low, high + 1, generator=generator)


@operator("Float16UniformFill", gradient="none", effects=("random",))
def half_uniform_fill(
    *,
    sizes: FillSizes,
    min: float = 0.0,
    max: float = 1.0,
    generator: RandomGenerator = None,
    device: TargetDevice = "cpu",
) -> Tensor:
    """Fill with float16 uniformly from [`min`, `max`)."""
    require(min < max, "max is greater than min", min, max)
    drawn = room(sizes.of(None), torch.float32, device, None)
    return drawn.uniform_(min, max, generator=generator).half()


@operator("GaussianFill", **FILL, effects=("random",))
def gaussian_fill(
    x: Tensor | None = None,
    *,
    sizes: FillSizes,
    mean: float = 0.0,
    std: float = 1.0,
    generator: RandomGenerator = None,
    device: TargetDevice = "cpu",
    out: Out = None,
) -> Tensor:
    """Fill from a normal distribution with `mean` and standard deviation `std`."""
    require(std >= 0, "the standard deviation is not negative", std)
    return room(sizes.of(x), torch.float32, device, out).normal_(mean, std, generator=generator)


@operator("XavierFill", **FILL, effects=("random",))
@operator("MSRAFill", **FILL, effects=("random",))
def scaled_fill(
    x: Tensor | None = None,
    *,
    sizes: FillSizes,
    kind: OperatorType,
    generator: RandomGenerator = None,
    device: TargetDevice = "cpu",
    out: Out = None,
) -> Tensor:
    """Fill by the number of elements per index of a dimension of the output, which is its fan.

    XavierFill: uniformly from [-s, s], s = sqrt(3 / fan), by dimension 0; MSRAFill: from a normal
    distribution with deviation sqrt(2 / fan), by dimension 1.
    """
    made, i = sizes.of(x), int(kind == "MSRAFill")
    require(len(made) > i, f"the output has more than {i} dimensions", made)
    require(made[i] > 0, f"dimension {i} of the output is not empty", made)
    fan = math.prod(made) // made[i]
    scale = ((2 if i else 3) / fan) ** 0.5 if fan else 0.0
    filled = room(made, torch.float32, device, out)
    if i:
        return filled.normal_(0.0, scale, generator=generator)
    return filled.uniform_(-scale, scale, generator=generator)


class UniqueRange:
    """The integers from `min` to `max`, of the type `dtype` (int32).

    Raises EnforceNotMet: a limit is missing, the range is empty, or not of integers.
    """

    takes = "int min, int max, int dtype"

    def __init__(self, arguments: Arguments) -> None:
        self.dtype = type_of_argument(arguments.single("dtype", 2), "dtype")
        require(self.dtype in INTS, "dtype is int32 or int64", self.dtype.name)
        self.torch_dtype = self.dtype.torch  # here, as torch before 2.9 does not trace it
        for name in ("min", "max"):
            require("i" in arguments.fields(name), f"the argument {name} is given")
        self.low, self.high = arguments.single("min", 0), arguments.single("max", 0)
        require(self.low < self.high, "max is greater than min", self.low, self.high)


@operator("UniqueUniformFill", **FILL, effects=("random", "values"))
def unique_uniform_fill(
    x: Tensor | None = None,
    avoid: Tensor | None = None,
    *,
    sizes: FillSizes,
    span: UniqueRange,
    generator: RandomGenerator = None,
    device: TargetDevice = "cpu",
) -> Tensor:
    """Fill with different integers from [`min`, `max`], excluding those of input 1."""
    made, low, high = sizes.of(x), span.low, span.high
    dtype = span.torch_dtype
    avoided: set[int] = set()
    if avoid is not None:
        require(avoid.dtype == dtype, f"input 1 is of type {span.dtype.name}", avoid.dtype)
        avoided = set(avoid.reshape(-1).tolist())
    available = high - low + 1 - sum(low <= one <= high for one in avoided)
    wanted = math.prod(made)
    if wanted > available:
        raise EnforceNotMet(
            f"{wanted} different integers are requested, but from {low} to {high} there are "
            f"{available}.",
            condition="n <= b - a + 1 - m",
        )
    drawn: dict[int, None] = {}
    while len(drawn) < wanted:
        # Draw more than are missing, until there are enough different ones.
        many = (2 * (wanted - len(drawn)) + 8,)
        some = torch.empty(many, dtype=torch.int64, device=device)
        some.random_(low, high + 1, generator=generator)
        drawn.update((one, None) for one in some.tolist() if one not in avoided)
    taken = list(drawn)[:wanted]
    return torch.tensor(taken, dtype=dtype, device=device).view(made)


@operator("WeightedSample", outputs="1-2", gradient="undefined", effects=("random",))
def weighted_sample(
    weights: Tensor,
    values: Tensor | None = None,
    *,
    outputs: OutputCount = 1,
    generator: RandomGenerator = None,
) -> tuple[Tensor, ...]:
    """Draw one column per row of a matrix of weights: its index, (rows, 1) of int32.

    Output 1: the elements of `values`, of the same sizes, at these columns. Without rows or columns
    the outputs are empty.
    Raises EnforceNotMet: the weights of a row add up to less than 0.
    """
    require(1 + (values is not None) == outputs, "there is one output per input", outputs)
    require(weights.dim() >= 2, "the weights have two dimensions", weights)
    values = weights if values is None else values
    require(values.shape == weights.shape, "weights and values have the same sizes", values)
    rows, columns = weights.shape[:2]
    if rows == 0 or columns == 0:
        return weights.new_zeros(0, dtype=torch.int32), weights.new_zeros(0)
    require(weights.dim() == 2, "the weights have two dimensions", weights)
    upto = weights.cumsum(1)
    total = upto[:, -1:]
    require_all(total >= 0, "the weights of a row add up to at least 0")
    # Rounding must not leave the largest draws without an index.
    upto = torch.cat([upto[:, :-1], total + 0.01], 1)
    drawn = torch.empty_like(total).uniform_(generator=generator) * total
    places = torch.searchsorted(upto, drawn).clamp(max=columns - 1)
    return places.to(torch.int32), values.gather(1, places)


class SampleCount:
    """The argument `num_samples` (0), which is absent where input 1 says how many.

    Raises EnforceNotMet: it is negative, or given twice.
    """

    takes = "int num_samples"

    def __init__(self, arguments: Arguments) -> None:
        self.number = arguments.single("num_samples", 0)
        require(self.number >= 0, "num_samples is not negative", self.number)
        fits = arguments.inputs == 1 or not arguments.has("num_samples")
        require(fits, "num_samples is an argument or input 1, not both")


@operator(
    "WeightedMultiSampling",
    types={"like": None},
    on_host=("like",),
    rearranges=(),
    effects=("random",),
)
def weighted_multi_sampling(
    upto: Tensor,
    like: Tensor | None = None,
    *,
    samples: SampleCount,
    generator: RandomGenerator = None,
) -> Tensor:
    """Draw indices (int32) by the cumulative weights `upto`.

    `num_samples` indices, or with an input 1 as many as it has elements and with its sizes; none
    without weights.
    """
    require(upto.dim() == 1, "the weights have one dimension", upto)
    n = upto.shape[0]
    if not n:
        return upto.new_zeros(0, dtype=torch.int32)
    sizes = [samples.number] if like is None else like.shape
    drawn = upto.new_empty(sizes).uniform_(generator=generator) * upto[-1]
    return torch.searchsorted(upto, drawn).clamp(max=n - 1).to(torch.int32)


@operator(
    "SparseDropoutWithReplacement",
    gradient="none",
    types={"values": (c10.int64,), "lengths": (c10.int32,)},
    effects=("random", "values"),
)
def sparse_dropout_with_replacement(
    values: Tensor,
    lengths: Tensor,
    *,
    ratio: float = 0.0,
    replacement_value: int = 0,
    generator: RandomGenerator = None,
) -> tuple[Tensor, Tensor]:
    """(values, lengths) -> both, with segments randomly replaced.

    With probability `ratio` a segment of values (int64) is replaced by one element,
    `replacement_value`.
    """
    require(0 <= ratio <= 1, "the ratio is a probability", ratio)
    require(values.dim() == 1, "the values have one dimension", values)
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    check_lengths(lengths, len(values))
    chances = torch.empty(lengths.shape, dtype=torch.float32, device=lengths.device)
    dropped = chances.uniform_(generator=generator) < ratio
    new = torch.where(dropped, 1, lengths)
    # Each element of the result is one of the values, or the replacement after them.
    n = len(values)
    firsts = torch.where(dropped, n, lengths.cumsum(0) - lengths)
    moved = (firsts - (new.cumsum(0) - new)).repeat_interleave(new)
    places = torch.arange(len(moved), device=values.device) + moved
    return torch.cat([values, values.new_full((1,), replacement_value)])[places], new
