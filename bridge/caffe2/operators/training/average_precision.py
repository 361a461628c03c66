# SPDX-License-Identifier: Apache-2.0
"""APMeter: the average precision of the last samples."""

from __future__ import annotations

from typing import Any

import torch

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import FLOAT, INT32, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("APMeter", inputs="2", outputs="1", gradient="undefined")
class APMeter(TorchOperator):
    """The average precision of each class. Inputs: scores and labels, one row per sample.

    Over the samples of all runs of this operator, at most `buffer_size` (1000). Beyond that the
    samples with the highest scores of each class are dropped first, since the buffer is sorted.
    Follows APMeterOp, caffe2/operators/apmeter_op.cc, PyTorch 1.8.1.
    """

    _scores: torch.Tensor | None = None
    _labels: torch.Tensor | None = None

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._size = self.GetSingleArgument("buffer_size", 1000)
        require(self._size > 0, "buffer_size is at least 1", self._size)

    def RunOnDevice(self) -> None:
        scores, labels = self.x(0, FLOAT), self.x(1, INT32)
        require(scores.dim() == 2, "scores have two dimensions", scores)
        require(labels.shape == scores.shape, "there is one label per score", labels, scores)
        scores, labels = scores[-self._size :], labels[-self._size :]
        if self._scores is not None and self._labels is not None:
            same = self._scores.size(1) == scores.size(1)
            require(same, "the number of classes is that of earlier runs", scores.size(1))
            old = max(self._size - len(scores), 0)
            kept = self._scores[max(len(self._scores) - old, 0) :]
            scores = torch.cat([kept, scores])
            labels = torch.cat([self._labels[max(len(self._labels) - old, 0) :], labels])
        scores, order = torch.sort(scores, dim=0, descending=True, stable=True)
        labels = labels.gather(0, order)
        ranks = torch.arange(1, len(scores) + 1, dtype=torch.float32)[:, None]
        precision = labels.cumsum(0).float() / ranks
        true = labels == 1
        total = torch.where(true, precision, 0.0).sum(0) / true.sum(0).clamp(min=1)
        self._scores, self._labels = scores, labels
        self.put(0, total)
