# SPDX-License-Identifier: Apache-2.0
"""PackRNNSequence and UnpackRNNSequence."""

from __future__ import annotations

from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, NUMBERS, require
from bridge.caffe2.operators.base.rows_and_segments import positions_in_segments, segment_ids
from bridge.caffe2.operators.segments.lengths import require_lengths

SEQUENCES = {"values": NUMBERS, "lengths": INT32}


@operator(
    "PackRNNSequence", types=SEQUENCES, gradient="UnpackRNNSequence g0 i1 > 0", effects=("values",)
)
def pack_rnn_sequence(values: Tensor, lengths: Tensor) -> Tensor:
    """(values: (sum of lengths, D...), lengths: (N)) -> (longest, N, D...), padded with 0.

    Follows PackRNNSequenceOpBase, caffe2/operators/pack_rnn_sequence_op.h, PyTorch 1.8.1.
    """
    require_lengths(lengths)
    require(values.dim() > 1, "values have a dimension of features", values)
    ids = segment_ids(lengths, values.shape[0])
    count = lengths.shape[0]
    longest = int(lengths.max()) if count else 0
    places = positions_in_segments(lengths, ids) * count + ids
    packed = values.new_zeros((longest * count, *values.shape[1:])).index_copy(0, places, values)
    return packed.view(longest, count, *values.shape[1:])


@operator(
    "UnpackRNNSequence", types=SEQUENCES, gradient="PackRNNSequence g0 i1 > 0", effects=("values",)
)
def unpack_rnn_sequence(values: Tensor, lengths: Tensor) -> Tensor:
    """(values: (longest, N, D...), lengths: (N)) -> (sum of lengths, D...)."""
    require_lengths(lengths)
    require(values.dim() > 2, "values have a dimension of features", values)
    longest, count = values.shape[:2]
    fits = lengths.shape[0] == count and (not count or int(lengths.max()) <= longest)
    require(fits, "there is one length per sequence, at most the longest", lengths.tolist(), values)
    ids = segment_ids(lengths)
    return values.flatten(0, 1).index_select(0, positions_in_segments(lengths, ids) * count + ids)
