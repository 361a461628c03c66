# SPDX-License-Identifier: Apache-2.0
"""Sequences: masks, labels by greedy decoding and Viterbi paths, and the beam search of CTC."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.gradients.maker import GradientMaker
from bridge.caffe2.operators.base.checks import INT32, axis_from_front, require, require_range
from bridge.caffe2.operators.segments.ctc_kernels import Search


def _sequence_mask_gradient(maker: GradientMaker) -> None:
    inputs = [maker.GO(0), *maker.op.input[1:2]]
    operator = maker.add("SequenceMask", inputs, [maker.GI(0)])
    operator.arg.append(MakeArgument("grad", 1))


@operator("SequenceMask", types={"given": INT32}, gradient=_sequence_mask_gradient)
def sequence_mask(
    x: Tensor,
    given: Tensor | None = None,
    *,
    mode: str = "",
    axis: int = 1,
    batch: int | None = None,
    repeat_from_axis: int | None = None,
    radius: int = 10,
    fill_val: float = -math.inf,
    grad: bool = False,
) -> Tensor:
    """Set masked elements of the rows of a tensor to `fill_val`.

    `mode` is sequence: from the length of the row on, input 1; window: farther than `radius` from
    the center, input 1; upper, lower, upperdiag, lowerdiag: above or below the diagonal, exclusive
    or inclusive. Rows are the dimensions before `axis`, or from `batch` to it; columns end before
    `repeat_from_axis`.
    """
    axis = axis_from_front(axis, x.dim())
    rows, columns = math.prod(x.shape[:axis]), math.prod(x.shape[axis:])
    batches = inner = 1
    if batch is not None:
        batch = axis_from_front(batch, x.dim())
        require(batch < axis, "batch is less than axis", batch, axis)
        batches = math.prod(x.shape[: batch + 1])
        rows //= max(batches, 1)
    if repeat_from_axis is not None:
        fits = mode == "sequence" and batch is None
        require(fits, "repeat_from_axis goes with the mode sequence, without batch", mode)
        repeat = axis_from_front(repeat_from_axis, x.dim())
        require(repeat >= axis, "repeat_from_axis is at least axis", repeat, axis)
        inner, columns = math.prod(x.shape[repeat:]), math.prod(x.shape[axis:repeat])
    i = torch.arange(rows, device=x.device)[:, None]
    j = torch.arange(columns, device=x.device)
    if mode in ("sequence", "window"):
        require(given is not None, f"there is an input 1 for the mode {mode}")
        assert given is not None
        require(given.numel() >= rows, f"input 1 has an element for each of {rows} rows", given)
        ends = given.reshape(-1)[:rows, None]
        outside = j >= ends if mode == "sequence" else (j - ends).abs() > radius
    else:
        fits = mode in ("upper", "lower", "upperdiag", "lowerdiag")
        require(fits, "mode is sequence, window, upper, lower, upperdiag or lowerdiag", mode)
        upper = j > i if mode == "upper" else j >= i
        lower = j < i if mode == "lower" else j <= i
        outside = upper if mode.startswith("upper") else lower
    parts = x.reshape(batches, rows, columns, inner)
    return parts.masked_fill(outside[:, :, None], 0.0 if grad else fill_val).reshape(x.shape)


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


@operator(
    "CTCBeamSearchDecoder",
    types={"lengths": INT32},
    gradient="undefined",
    outputs="2-3",
    effects=("values",),
)
def ctc_beam_search_decoder(
    x: Tensor,
    lengths: Tensor | None = None,
    *,
    beam_width: int = 10,
    num_candidates: int = 1,
    prune_threshold: float = 0.001,
    outputs: OutputCount = 3,
) -> tuple[Tensor, Tensor, Tensor]:
    """(probabilities: (T, N, labels), optionally lengths: (N)) -> lengths, labels, odds.

    Label 0 is the blank.
    Outputs: the lengths of `num_candidates` decoded sequences per input sequence, the most likely
    first; their labels, concatenated; their odds. `beam_width` prefixes are kept per step; labels
    with a probability of at most `prune_threshold` are ignored, unless all are.
    Follows CTCBeamSearchDecoderOp, caffe2/operators/ctc_beam_search_decoder_op.cc, PyTorch 1.8.1.
    """
    require(outputs == 3, "there are three outputs", outputs)
    require(num_candidates >= 0, "num_candidates is not negative", num_candidates)
    require(x.dim() == 3, "probabilities have three dimensions", x)
    moments, n, _ = x.shape
    steps = [moments] * n if lengths is None else lengths.reshape(-1).tolist()
    require(len(steps) >= n, "there is one length per sequence", len(steps), n)
    require(
        all(0 <= one <= moments for one in steps[:n]), f"lengths are from 0 to {moments}", steps
    )
    given = x.detach().cpu().contiguous().numpy()
    found: list[tuple[tuple[int, ...], float]] = []
    for i, length in enumerate(steps[:n]):
        search = Search(max(beam_width, 0), prune_threshold)
        for step in given[:length, i]:
            search.step(step)
        best = search.ranked[:num_candidates]
        found += [(prefix, search.odds(prefix)) for prefix in best]
        found += [((), 0.0)] * (num_candidates - len(best))
    counts = [len(prefix) for prefix, _ in found]
    labels = [label for prefix, _ in found for label in prefix]
    return (
        x.new_tensor(counts, dtype=torch.int32),
        x.new_tensor(labels, dtype=torch.int32),
        x.new_tensor([odds for _, odds in found]),
    )
