# SPDX-License-Identifier: Apache-2.0
"""CTCBeamSearchDecoder: the most likely label sequences for probabilities per time step."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT32, single

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Prefix = tuple[int, ...]
    Odds = dict[Prefix, float]

__all__: list[str] = []


def add(odds: Odds, prefix: Prefix, value: float) -> None:
    """Add to the odds of a prefix, in float32 like Caffe2: this decides between close ones."""
    odds[prefix] = single(odds.get(prefix, 0.0) + single(value))


class Search:
    """The prefixes of one sequence with their odds of ending in a blank (label 0), or a label."""

    def __init__(self, width: int, threshold: float) -> None:
        self.width = width
        self.threshold = threshold
        self.blank: Odds = {(): 1.0}
        self.label: Odds = {(): 0.0}
        self.beam: list[Prefix] = [()]
        self.ranked: list[Prefix] = []

    def step(self, given: list[float]) -> None:
        """Extend the prefixes by the label probabilities of one time step."""
        blank, label = self.blank, self.label
        self.blank, self.label = {}, {}
        labels = [c for c, one in enumerate(given) if one > self.threshold]
        beam = set(self.beam)
        for prefix in sorted(self.beam):
            for c in labels or range(len(given)):
                self._extend(prefix, c, given, beam, blank, label)
        total = dict(self.blank)
        for prefix, odds in self.label.items():
            add(total, prefix, odds)
        # Equal odds are ordered by prefix.
        self.ranked = sorted(sorted(total), key=total.__getitem__, reverse=True)
        self.beam = self.ranked[: self.width]

    def _extend(
        self,
        prefix: Prefix,
        c: int,
        given: list[float],
        beam: set[Prefix],
        blank: Odds,
        label: Odds,
    ) -> None:
        ends_blank, ends_label = blank.get(prefix, 0.0), label.get(prefix, 0.0)
        either = single(ends_blank + ends_label)
        if c == 0:
            add(self.blank, prefix, given[0] * either)
            return
        longer = (*prefix, c)
        if prefix and prefix[-1] == c:
            add(self.label, longer, given[c] * ends_blank)
            add(self.label, prefix, given[c] * ends_label)
        else:
            add(self.label, longer, given[c] * either)
        if longer not in beam:
            before = single(blank.get(longer, 0.0) + label.get(longer, 0.0))
            add(self.blank, longer, given[0] * before)
            add(self.label, longer, given[c] * label.get(longer, 0.0))

    def odds(self, prefix: Prefix) -> float:
        """Return the odds of a prefix."""
        return self.blank.get(prefix, 0.0) + self.label.get(prefix, 0.0)


@register_operator("CTCBeamSearchDecoder")
class CTCBeamSearchDecoder(FloatOperator):
    """(probabilities: (T, N, labels), optionally lengths: (N)) -> lengths, labels, odds.

    Label 0 is the blank.
    Outputs: the lengths of `num_candidates` (1) decoded sequences per input sequence, the most
    likely first; their labels, concatenated; their odds. `beam_width` (10) prefixes are kept per
    step; labels with a probability of at most `prune_threshold` (0.001) are ignored, unless all
    are.
    Follows CTCBeamSearchDecoderOp, caffe2/operators/ctc_beam_search_decoder_op.cc, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.enforce(self.OutputSize() == 3, "there are three outputs", self.OutputSize())
        self._width = self.GetSingleArgument("beam_width", 10)
        self._candidates = self.GetSingleArgument("num_candidates", 1)
        self._threshold = single(self.GetSingleArgument("prune_threshold", 0.001))
        self.enforce(self._candidates >= 0, "num_candidates is not negative", self._candidates)

    def RunOnDevice(self) -> None:
        x = self.x(0)
        self.enforce(x.dim() == 3, "probabilities have three dimensions", x)
        moments, n, _ = x.shape
        lengths = self.integers(1, INT32) if self.InputSize() > 1 else [moments] * n
        self.enforce(len(lengths) >= n, "there is one length per sequence", len(lengths), n)
        self.enforce(
            all(0 <= one <= moments for one in lengths[:n]),
            f"lengths are from 0 to {moments}",
            lengths,
        )
        found: list[tuple[Prefix, float]] = []
        for i, length in enumerate(lengths[:n]):
            search = Search(max(self._width, 0), self._threshold)
            for given in x[:length, i].tolist():
                search.step(given)
            best = search.ranked[: self._candidates]
            found += [(prefix, search.odds(prefix)) for prefix in best]
            found += [((), 0.0)] * (self._candidates - len(best))
        labels = [label for prefix, _ in found for label in prefix]
        self.put(0, torch.tensor([len(prefix) for prefix, _ in found], dtype=torch.int32))
        self.put(1, torch.tensor(labels, dtype=torch.int32))
        self.put(2, torch.tensor([odds for _, odds in found], dtype=torch.float32))
