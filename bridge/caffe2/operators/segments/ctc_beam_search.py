# SPDX-License-Identifier: Apache-2.0
"""CTCBeamSearchDecoder: the most likely label sequences for probabilities per time step."""

from __future__ import annotations

import torch
from torch import Tensor

from bridge.caffe2.execution.function_operator import OutputCount, operator
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.segments.ctc_kernels import Search


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
