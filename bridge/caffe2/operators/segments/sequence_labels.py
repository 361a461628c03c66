# SPDX-License-Identifier: Apache-2.0
"""Labels of sequences: CTC greedy decoding and Viterbi paths."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, require, require_range


@operator("CTCGreedyDecoder", types={"lengths": INT32}, gradient="undefined", effects=("values",))
def ctc_greedy_decoder(
    x: Tensor, lengths: Tensor | None = None, *, merge_repeated: bool = True
) -> tuple[Tensor, Tensor]:
    """(X: (T, N, C), optionally lengths: (N)) -> the lengths of label sequences (N), labels.

    The best label of each step, without blanks (0) and, with `merge_repeated`, without repetitions
    that have no blank between them. Both outputs are int32.
    Follows CTCGreedyDecoderOp, caffe2/operators/ctc_greedy_decoder_op.cc, PyTorch 1.8.1.
    """
    require(x.dim() == 3, "X has three dimensions", x)
    steps, count, _ = x.shape
    best = x.argmax(2).t() if x.numel() else x.new_zeros((count, 0), dtype=torch.int64)
    kept = best != 0
    if merge_repeated:
        kept[:, 1:] &= best[:, 1:] != best[:, :-1]
    if lengths is not None:
        fits = lengths.dim() == 1 and lengths.shape[0] == count
        require(fits, "there is one length per sequence", lengths, x)
        require_range("lengths", lengths, steps + 1)
        kept &= torch.arange(best.shape[1], device=x.device) < lengths[:, None]
    return kept.sum(1, dtype=torch.int32), best[kept].int()


@operator("ViterbiPath", gradient="none")
def viterbi_path(scores: Tensor, transitions: Tensor) -> Tensor:
    """(scores: (T, C), transitions: (C, C)) -> the best label of each step (T), int32.

    The path with the largest sum of scores and transitions from each label to the next.
    Follows ViterbiPathOp, caffe2/operators/crf_viterbi_op.cc, PyTorch 1.8.1.
    """
    fits = scores.dim() == 2 and transitions.dim() == 2
    require(fits, "scores and transitions have two dimensions", scores, transitions)
    steps, size = scores.shape
    fits = transitions.shape == (size, size)
    require(fits, "there is one transition between each two labels", transitions)
    require(steps > 0, "there is at least one step", scores)
    best = scores[0]
    back = []
    for i in range(1, steps):
        best, before = (best.unsqueeze(1) + transitions).max(0)
        best = best + scores[i]
        back.append(before)
    path = [best.argmax(0, keepdim=True)]
    for before in reversed(back):
        path.append(before.index_select(0, path[-1]))
    return torch.cat(path[::-1]).int()


@operator("SwapBestPath", types={"labels": INT32}, gradient="none")
def swap_best_path(scores: Tensor, labels: Tensor) -> Tensor:
    """(scores: (T, C), labels: (T)) -> scores, with row maxima swapped to the labels.

    Follows SwapBestPathOp, caffe2/operators/crf_viterbi_op.cc, PyTorch 1.8.1.
    """
    fits = scores.dim() == 2 and labels.dim() == 1
    require(fits, "scores have two dimensions and labels have one", scores, labels)
    require(labels.shape[0] == scores.shape[0], "there is one label per row", labels, scores)
    require_range("labels", labels, scores.shape[1])
    index = labels.long().view(-1, 1)
    top = scores.argmax(1, keepdim=True)
    swapped = scores.scatter(1, top, scores.gather(1, index))
    return swapped.scatter(1, index, scores.gather(1, top))
