# SPDX-License-Identifier: Apache-2.0
"""CTCBeamSearchDecoder: the likeliest sequences of labels by the probabilities of each moment."""

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
    """Add to the odds of a prefix, in float32 as Caffe2: that decides between near ones."""
    odds[prefix] = single(odds.get(prefix, 0.0) + single(value))


class Search:
    """The prefixes of one sequence with their odds: ending in a blank, which is label 0, or not."""

    def __init__(self, width: int, threshold: float) -> None:
        self.width = width
        self.threshold = threshold
        self.blank: Odds = {(): 1.0}
        self.label: Odds = {(): 0.0}
        self.beam: list[Prefix] = [()]
        self.ranked: list[Prefix] = []

    def step(self, given: list[float]) -> None:
        """Go on by the probabilities of labels at one moment."""
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
        # Of equal ones the first, as prefixes are sorted.
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
    """Inputs: probabilities (moments, sequences, labels), of which label 0 is blank; lengths.

    Outputs: the lengths of `num_candidates` (1) decoded sequences for each, the likeliest first,
    their labels one after another, and their odds. `beam_width` (10) prefixes are followed; labels
    of a probability up to `prune_threshold` (0.001) are not, unless all are.
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
