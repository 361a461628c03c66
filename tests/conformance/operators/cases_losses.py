# SPDX-License-Identifier: Apache-2.0
"""Losses, their gradients, and measures of predictions."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(23)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def probabilities(*shape: int) -> np.ndarray:
    return _random.uniform(0.05, 0.95, shape).astype(np.float32)


def distributions(*shape: int) -> np.ndarray:
    p = _random.uniform(0.1, 1, shape)
    return (p / p.sum(-1, keepdims=True)).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int32)


LABELS = ints(1, 0, 4, 2)
SCALAR = np.array(0.7, np.float32)
SIGNS = ints(1, -1, 1, 1, -1)
PLACES = np.array([[[0, 1], [2, -1]], [[1, 1], [-1, 0]]], np.int32)

# fmt: off
CASES: list[Case] = [
    case("plain", "LabelCrossEntropy", probabilities(4, 5), LABELS),
    case("labels of two dimensions", "LabelCrossEntropy", probabilities(4, 5),
         LABELS.reshape(4, 1)),
    case("zero", "LabelCrossEntropy", np.zeros((1, 2), np.float32), ints(1)),
    case("out of range", "LabelCrossEntropy", probabilities(4, 4), LABELS),
    case("negative", "LabelCrossEntropy", probabilities(1, 4), ints(-1)),
    case("too few labels", "LabelCrossEntropy", probabilities(5, 5), LABELS),
    case("int64 labels", "LabelCrossEntropy", probabilities(4, 5), LABELS.astype(np.int64)),
    case("plain", "LabelCrossEntropyGradient", probabilities(4, 5), LABELS, values(4)),
    case("plain", "CrossEntropy", probabilities(4, 5), distributions(4, 5)),
    case("plain", "CrossEntropyGradient", probabilities(4, 5), distributions(4, 5), values(4)),
    case("other shapes", "CrossEntropy", probabilities(4, 5), distributions(4, 4)),
    case("vector", "MakeTwoClass", probabilities(4)),
    case("column", "MakeTwoClass", probabilities(4, 1)),
    case("matrix", "MakeTwoClass", probabilities(2, 3)),
    case("plain", "MakeTwoClassGradient", values(4, 2)),
    *[
        case(name, f"{weighted}SigmoidCrossEntropyWithLogits", *inputs, **args)
        for weighted, name, inputs, args in (
            ("", "matrix", [values(4, 3) * 3, probabilities(4, 3)], {}),
            ("", "vector", [values(4), probabilities(4)], {}),
            ("", "three dimensions", [values(2, 3, 4), probabilities(2, 3, 4)], {}),
            ("", "log_D_trick", [values(4, 3), probabilities(4, 3)], {"log_D_trick": True}),
            ("", "unjoined", [values(4, 3), probabilities(4, 3)], {"unjoined_lr_loss": True}),
            (
                "",
                "both",
                [values(4, 3), probabilities(4, 3)],
                {"unjoined_lr_loss": True, "log_D_trick": True},
            ),
            ("", "other shapes", [values(4, 3), probabilities(4, 2)], {}),
            ("Weighted", "matrix", [values(4, 3), probabilities(4, 3), values(4, 3)], {}),
            ("Weighted", "vector", [values(4), probabilities(4), values(4)], {}),
        )
    ],
    case("plain", "SigmoidCrossEntropyWithLogitsGradient", values(4), values(4, 3),
         probabilities(4, 3)),
    case("log_D_trick", "SigmoidCrossEntropyWithLogitsGradient", values(4), values(4, 3),
         probabilities(4, 3), log_D_trick=True),
    case("unjoined", "SigmoidCrossEntropyWithLogitsGradient", values(4), values(4, 3),
         probabilities(4, 3), unjoined_lr_loss=True),
    case("plain", "WeightedSigmoidCrossEntropyWithLogitsGradient", values(4), values(4, 3),
         probabilities(4, 3), values(4, 3)),
    case("plain", "SoftmaxWithLoss", values(4, 5), LABELS, outputs=2),
    case("scale", "SoftmaxWithLoss", values(4, 5), LABELS, outputs=2, scale=2.5),
    case("weights", "SoftmaxWithLoss", values(4, 5), LABELS, probabilities(4), outputs=2),
    case("weights of zero", "SoftmaxWithLoss", values(4, 5), LABELS, np.zeros(4, np.float32),
         outputs=2),
    case("weights by batch size", "SoftmaxWithLoss", values(4, 5), LABELS, probabilities(4),
         outputs=2, average_by_batch_size=1),
    case("label_prob", "SoftmaxWithLoss", values(4, 5), distributions(4, 5), outputs=2,
         label_prob=1),
    case("label_prob, weights", "SoftmaxWithLoss", values(4, 5), distributions(4, 5),
         probabilities(4), outputs=2, label_prob=1),
    case("label_prob that do not add up", "SoftmaxWithLoss", values(4, 5), probabilities(4, 5),
         outputs=2, label_prob=1),
    case("axis", "SoftmaxWithLoss", values(2, 2, 5), LABELS.reshape(2, 2), outputs=2, axis=2),
    case("column of labels", "SoftmaxWithLoss", values(4, 5), LABELS.reshape(4, 1), outputs=2),
    case("out of range", "SoftmaxWithLoss", values(4, 4), LABELS, outputs=2),
    case("negative scale", "SoftmaxWithLoss", values(4, 5), LABELS, outputs=2, scale=-1.0),
    case("plain", "SoftmaxWithLossGradient", values(4, 5), LABELS, distributions(4, 5), SCALAR),
    case("weights", "SoftmaxWithLossGradient", values(4, 5), LABELS, probabilities(4),
         distributions(4, 5), SCALAR, scale=1.5),
    case("label_prob", "SoftmaxWithLossGradient", values(4, 5), distributions(4, 5),
         distributions(4, 5), SCALAR, label_prob=1),
    case("plain", "SpatialSoftmaxWithLoss", values(2, 3, 2, 2), PLACES, outputs=2),
    case("weights", "SpatialSoftmaxWithLoss", values(2, 3, 2, 2), PLACES, probabilities(2, 2, 2),
         outputs=2, scale=2.0),
    case("plain", "SpatialSoftmaxWithLossGradient", values(2, 3, 2, 2), PLACES,
         probabilities(2, 3, 2, 2), SCALAR),
    case("weights", "SpatialSoftmaxWithLossGradient", values(2, 3, 2, 2), PLACES,
         probabilities(2, 2, 2), probabilities(2, 3, 2, 2), SCALAR, scale=2.0),
    case("plain", "AveragedLoss", values(3, 4)),
    case("empty", "AveragedLoss", np.zeros(0, np.float32)),
    case("plain", "AveragedLossGradient", values(3, 4), SCALAR),
    case("plain", "Accuracy", values(4, 5), LABELS),
    case("top 3", "Accuracy", values(4, 5), LABELS, top_k=3),
    case("equal", "Accuracy", np.ones((4, 5), np.float32), LABELS, top_k=2),
    case("plain", "MultiClassAccuracy", values(6, 3), ints(0, 1, 0, 2, 2, 0), outputs=2),
    case("absent class", "MultiClassAccuracy", values(4, 3), ints(0, 2, 0, 2), outputs=2),
    case("plain", "Perplexity", probabilities(5)),
    case("plain", "MarginRankingCriterion", values(5), values(5), SIGNS),
    case("margin", "MarginRankingCriterion", values(5), values(5), SIGNS, margin=0.3),
    case("plain", "MarginRankingCriterionGradient", values(5), values(5), SIGNS, values(5),
         outputs=2),
    case("plain", "CosineEmbeddingCriterion", values(5), SIGNS),
    case("margin", "CosineEmbeddingCriterion", values(5), SIGNS, margin=0.3),
    case("margin", "CosineEmbeddingCriterionGradient", values(5), SIGNS, values(5), margin=0.3),
    case("plain", "PairWiseLoss", values(5), values(5)),
    case("column", "PairWiseLoss", values(5, 1), values(5, 1)),
    case("equal labels", "PairWiseLoss", values(4), np.array([1, 1, 2, 1], np.float32)),
    case("lengths", "PairWiseLoss", values(6), values(6), ints(2, 1, 3)),
    case("large", "PairWiseLoss", 30 * values(5), values(5)),
    case("plain", "PairWiseLossGradient", values(5), values(5), values(1)),
    case("lengths", "PairWiseLossGradient", values(6), values(6), values(3), ints(2, 1, 3)),
    case("plain", "BernoulliJSD", probabilities(4), probabilities(4)),
    case("plain", "BernoulliJSDGradient", values(4), probabilities(4), probabilities(4)),
]
# fmt: on
