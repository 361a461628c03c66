# SPDX-License-Identifier: Apache-2.0
"""Labels of sequences: CTC greedy decoding and Viterbi paths."""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32

__all__ = ["CTCGreedyDecoder", "SwapBestPath", "ViterbiPath"]


@register_operator("CTCGreedyDecoder")
class CTCGreedyDecoder(FloatOperator):
    """(X: (T, N, C), optionally lengths: (N)) -> the lengths of label sequences (N), labels.

    The best label of each step, without blanks (0) and, with `merge_repeated` (True), without
    repetitions that have no blank between them. Both outputs are int32.
    Follows CTCGreedyDecoderOp, caffe2/operators/ctc_greedy_decoder_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 3, "X has three dimensions", x)
        steps, count, _ = x.shape
        lengths = [steps] * count
        if self.InputSize() == 2:
            lengths = self.x(1, INT32).tolist()
            self.enforce(len(lengths) == count, "there is one length per sequence", lengths, x)
            inside = not lengths or 0 <= min(lengths) <= max(lengths) <= steps
            self.enforce(inside, f"lengths are from 0 to {steps}", lengths)
        merge = bool(self.GetSingleArgument("merge_repeated", True))
        best = x.argmax(2).t().tolist() if x.numel() else [[] for _ in range(count)]
        counts, labels = [], []
        for row, length in zip(best, lengths, strict=True):
            before, found = 0, []
            for label in row[:length]:
                if label and not (merge and label == before):
                    found.append(label)
                before = label
            counts.append(len(found))
            labels += found
        self.put(0, torch.tensor(counts, dtype=torch.int32))
        self.put(1, torch.tensor(labels, dtype=torch.int32))


@register_operator("ViterbiPath")
class ViterbiPath(FloatOperator):
    """(scores: (T, C), transitions: (C, C)) -> the best label of each step (T), int32.

    The path with the largest sum of scores and transitions from each label to the next.
    Follows ViterbiPathOp, caffe2/operators/crf_viterbi_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        scores, transitions = self.x(0), self.x(1)
        self.enforce(
            scores.dim() == 2 and transitions.dim() == 2,
            "scores and transitions have two dimensions",
        )
        size = scores.shape[1]
        self.enforce(
            transitions.shape == (size, size),
            "there is one transition between each two labels",
            transitions,
        )
        self.enforce(scores.shape[0] > 0, "there is at least one step", scores)
        best = scores[0]
        back = []
        for row in scores[1:]:
            best, at = (best.unsqueeze(1) + transitions).max(0)
            best = best + row
            back.append(at.tolist())
        label = int(best.argmax())
        path = [label]
        for at in reversed(back):
            label = at[label]
            path.append(label)
        self.out(0, (len(path),), c10.int32).numpy()[...] = path[::-1]


@register_operator("SwapBestPath")
class SwapBestPath(FloatOperator):
    """(scores: (T, C), labels: (T) of int32) -> scores, with row maxima swapped to the labels.

    Follows SwapBestPathOp, caffe2/operators/crf_viterbi_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, labels = self.x(0), self.x(1, INT32)
        self.enforce(
            x.dim() == 2 and labels.dim() == 1, "scores have two dimensions and labels have one"
        )
        self.enforce(len(labels) == len(x), "there is one label per row", labels, x)
        index = labels.long().view(-1, 1)
        self.enforce_range("labels", labels, x.shape[1])
        top = x.argmax(1, keepdim=True)
        made = x.scatter(1, top, x.gather(1, index))
        self.put(0, made.scatter_(1, index, x.gather(1, top)))
