# SPDX-License-Identifier: Apache-2.0
"""Elements drawn at random; for the generators see `fills.random`."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.random_operator import RandomOperator
from bridge.caffe2.operators.base.rows_and_segments import check_lengths, segment_ids
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INT64, enforce

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__: list[str] = []


@register_operator("WeightedSample")
class WeightedSample(RandomOperator):
    """Draw one column per row of input 0, a matrix of weights: its index, (rows, 1) of int32.

    Output 1: the elements of input 1, values of the same sizes, at these columns. Without rows or
    columns the outputs are empty.
    Raises EnforceNotMet: the weights of a row add up to less than 0.
    Follows WeightedSampleOp, caffe2/operators/weighted_sample_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        valued = self.InputSize() == 2
        enforce(self.InputSize() == self.OutputSize(), "There must be one output per input.")
        weights = self.x(0, FLOAT)
        enforce(weights.dim() >= 2, "Input 0 must have two dimensions.")
        values = self.x(1, FLOAT) if valued else weights
        enforce(values.shape == weights.shape, "Weights and values must have the same sizes.")
        rows, columns = weights.shape[:2]
        if rows == 0 or columns == 0:
            places = chosen = weights.new_zeros(0)
        else:
            enforce(weights.dim() == 2, "Input 0 must have two dimensions.")
            upto = weights.cumsum(1)
            total = upto[:, -1:].clone()
            enforce(bool((total >= 0).all()), "The weights of a row must add up to at least 0.")
            # Rounding must not leave the largest draws without an index.
            upto[:, -1] += 0.01
            drawn = torch.rand(total.shape, generator=self.generator()) * total
            places = torch.searchsorted(upto, drawn).clamp(max=columns - 1)
            chosen = values.gather(1, places)
        self.put(0, places.to(torch.int32))
        if valued:
            self.put(1, chosen)


@register_operator("WeightedMultiSampling")
class WeightedMultiSampling(RandomOperator):
    """Draw indices (int32) by the cumulative weights in input 0.

    `num_samples` indices, or with an input 1 as many as it has elements and with its sizes; none
    without weights.
    Follows WeightedMultiSamplingOp, caffe2/operators/weighted_multi_sampling_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._count = self.GetSingleArgument("num_samples", 0)
        enforce(self._count >= 0, f"num_samples must not be negative: {self._count}.")
        enforce(
            self.InputSize() == 1 or not self.HasArgument("num_samples"),
            "num_samples is an argument or input 1, not both.",
        )

    def RunOnDevice(self) -> None:
        upto = self.x(0, FLOAT)
        enforce(upto.dim() == 1, "Input 0 must have one dimension.")
        sizes = self.Input(1).sizes() if self.InputSize() == 2 else [self._count]
        if not len(upto):
            sizes = [0]
        drawn = torch.rand(torch.Size(sizes), generator=self.generator())
        if len(upto):
            drawn *= upto[-1]
        places = torch.searchsorted(upto.contiguous(), drawn).clamp_(max=max(len(upto) - 1, 0))
        self.put(0, places.to(torch.int32))


@register_operator("SparseDropoutWithReplacement")
class SparseDropoutWithReplacement(RandomOperator):
    """(values, lengths) -> both, with segments randomly replaced.

    With probability `ratio` (0) a segment of values (int64) is replaced by one element,
    `replacement_value` (0).
    Follows SparseDropoutWithReplacementOp, caffe2/operators/sparse_dropout_with_replacement_op.cc,
    PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._ratio = self.GetSingleArgument("ratio", 0.0)
        enforce(0 <= self._ratio <= 1, f"The ratio must be a probability, not {self._ratio}.")

    def RunOnDevice(self) -> None:
        x, lengths = self.x(0, INT64), self.x(1, INT32)
        enforce(
            x.dim() == 1 and lengths.dim() == 1, "Elements and lengths must have one dimension."
        )
        check_lengths(lengths, len(x))
        dropped = torch.rand(lengths.shape, generator=self.generator()) < self._ratio
        new = torch.where(dropped, 1, lengths)
        result = x.new_full((int(new.sum()),), self.GetSingleArgument("replacement_value", 0))
        result[~dropped[segment_ids(new)]] = x[~dropped[segment_ids(lengths)]]
        self.put(0, result)
        self.put(1, new)
