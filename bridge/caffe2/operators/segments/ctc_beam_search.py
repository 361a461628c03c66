# SPDX-License-Identifier: Apache-2.0
"""CTCBeamSearchDecoder: the most likely label sequences for probabilities per time step."""

from __future__ import annotations

from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, require, single
from bridge.caffe2.operators.base.lazy_torch import torch

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

    from bridge.caffe2.execution.declaration import OutputCount

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
    found: list[tuple[Prefix, float]] = []
    for i, length in enumerate(steps[:n]):
        search = Search(max(beam_width, 0), prune_threshold)
        for given in x[:length, i].tolist():
            search.step(given)
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
