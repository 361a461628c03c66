# SPDX-License-Identifier: Apache-2.0
"""Elements drawn at random; for the generators see `fills.random`."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge import c10
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import OutputCount, RandomGenerator, operator
from bridge.caffe2.operators.base.checks import has_values, require
from bridge.caffe2.operators.base.rows_and_segments import check_lengths


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
    Follows WeightedSampleOp, caffe2/operators/weighted_sample_op.cc, PyTorch 1.8.1.
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
    if has_values(total):
        require(bool((total >= 0).all()), "the weights of a row add up to at least 0")
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
    Follows WeightedMultiSamplingOp, caffe2/operators/weighted_multi_sampling_op.cc, PyTorch 1.8.1.
    """
    require(upto.dim() == 1, "the weights have one dimension", upto)
    n = upto.shape[0]
    if not n:
        return upto.new_zeros(0, dtype=torch.int32)
    sizes = [samples.number] if like is None else like.shape
    drawn = upto.new_empty(sizes).uniform_(generator=generator) * upto[-1]
    return torch.searchsorted(upto, drawn).clamp(max=n - 1).to(torch.int32)


class DropRatio:
    """The argument `ratio` (0). Raises EnforceNotMet: it is not a probability."""

    takes = "float ratio"

    def __init__(self, arguments: Arguments) -> None:
        self.value = arguments.single("ratio", 0.0)
        require(0 <= self.value <= 1, "the ratio is a probability", self.value)


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
    ratio: DropRatio,
    replacement_value: int = 0,
    generator: RandomGenerator = None,
) -> tuple[Tensor, Tensor]:
    """(values, lengths) -> both, with segments randomly replaced.

    With probability `ratio` a segment of values (int64) is replaced by one element,
    `replacement_value`.
    Follows SparseDropoutWithReplacementOp, caffe2/operators/sparse_dropout_with_replacement_op.cc,
    PyTorch 1.8.1.
    """
    require(values.dim() == 1, "the values have one dimension", values)
    require(lengths.dim() == 1, "the lengths have one dimension", lengths)
    check_lengths(lengths, len(values))
    chances = torch.empty(lengths.shape, dtype=torch.float32, device=lengths.device)
    dropped = chances.uniform_(generator=generator) < ratio.value
    new = torch.where(dropped, 1, lengths)
    # Each element of the result is one of the values, or the replacement after them.
    n = len(values)
    firsts = torch.where(dropped, n, lengths.cumsum(0) - lengths)
    moved = (firsts - (new.cumsum(0) - new)).repeat_interleave(new)
    places = torch.arange(len(moved), device=values.device) + moved
    return torch.cat([values, values.new_full((1,), replacement_value)])[places], new
