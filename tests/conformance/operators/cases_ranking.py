# SPDX-License-Identifier: Apache-2.0
"""Rankings, precision, keypoints, beam search, hashes, and what does nothing."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case, strings

r = np.random.RandomState(11)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


scores = r.rand(9).astype(np.float32)
ratings = f32(1, 0, 2, 0, 0, 3, 1, 1, 2)
lengths = i32(3, 2, 4)
probabilities = r.rand(5, 3, 4).astype(np.float32)
long = r.dirichlet(np.full(6, 0.3), (30, 2)).astype(np.float32)
heat = r.rand(2, 3, 5, 5).astype(np.float32)
corners = np.zeros((1, 4, 3, 3), np.float32)
corners[0, [0, 1, 2, 3], [0, 0, 2, 2], [0, 2, 0, 2]] = f32(1, 2, 3, 4)
boxes = f32(0, 0, 10, 20, 5, 5, 5.5, 30).reshape(2, 4)
classes = (r.rand(6, 3) > 0.4).astype(np.int32)
sample = r.rand(6, 3).astype(np.float32)
mask = np.array([True, False, True])
rows = r.rand(2, 3).astype(np.float32)


def ranked(name: str, *inputs: np.ndarray, **args: Any) -> Case:
    given = inputs or (scores, ratings, lengths)
    return case(name, "LambdaRankNdcg", *given, outputs=2, **args)


def decoded(name: str, *inputs: np.ndarray, outputs: int = 3, **args: Any) -> Case:
    given = inputs or (probabilities,)
    return case(name, "CTCBeamSearchDecoder", *given, outputs=outputs, **args)


CASES = [
    ranked("defaults"),
    ranked("gain", use_ndcg_as_loss=True),
    ranked("linear gain", use_ndcg_as_loss=True, use_exp_gain=False),
    ranked("linear alone", use_exp_gain=False),
    ranked("as it is", use_idcg_normalization=False),
    ranked("far apart", 400 * scores, ratings, lengths),
    ranked("empty session", scores, ratings, i32(3, 0, 6)),
    ranked("empty session last", scores, ratings, i32(9, 0)),
    ranked("one session", scores, ratings, i32(9)),
    ranked("ratings differ", scores, ratings[:5], lengths),
    ranked("lengths of int64", scores, ratings, lengths.astype(np.int64)),
    ranked("matrix", scores.reshape(3, 3), ratings, lengths),
    case("simple", "LambdaRankNdcgGradient", scores, lengths, ratings, f32(1, 2, 3)),
    case("losses", "LambdaRankNdcgGradient", scores, lengths, ratings, f32(1, 2)),
    decoded("defaults"),
    decoded("two outputs", outputs=2),
    decoded("two each", num_candidates=2),
    decoded("narrow", beam_width=1),
    decoded("more than followed", beam_width=2, num_candidates=4),
    decoded("more than there are", probabilities[:1, :, :1], num_candidates=3),
    decoded("lengths", probabilities, i32(5, 0, 2), num_candidates=2),
    decoded("lengths beyond", probabilities, i32(5, 6, 2)),
    decoded("pruned", prune_threshold=0.6, num_candidates=2),
    decoded("all pruned", prune_threshold=2.0, num_candidates=2),
    decoded("long", long, num_candidates=3),
    decoded("no moments", probabilities[:0]),
    decoded("no sequences", probabilities[:, :0]),
    decoded("matrix", probabilities[0]),
    case("simple", "HeatmapMaxKeypoint", heat, boxes),
    case("softmax", "HeatmapMaxKeypoint", heat, boxes, should_output_softmax=True),
    case("corners", "HeatmapMaxKeypoint", corners, boxes[:1]),
    case("flat", "HeatmapMaxKeypoint", np.zeros_like(corners), boxes[:1]),
    case("no boxes", "HeatmapMaxKeypoint", heat[:0], boxes[:0]),
    case("no maps", "HeatmapMaxKeypoint", heat[:, :0], boxes),
    case("one pixel", "HeatmapMaxKeypoint", heat[:, :, :1, :1], boxes),
    case("not square", "HeatmapMaxKeypoint", heat[:, :, :3], boxes),
    case("boxes", "HeatmapMaxKeypoint", heat, boxes[:1]),
    case("simple", "APMeter", sample, classes),
    case("small buffer", "APMeter", sample, classes, buffer_size=4),
    case("ties", "APMeter", sample.round(), classes),
    case("other labels", "APMeter", sample, 2 * classes),
    case("no samples", "APMeter", sample[:0], classes[:0]),
    case("float labels", "APMeter", sample, sample),
    *[
        case(f"{np.dtype(dtype).name} {seed}", "IndexHash", values.astype(dtype), **args)
        for dtype in (np.int32, np.int64)
        for values in (np.array([[0, 1, -1], [255, 256, 2**31 - 1]]),)
        for seed, args in (
            ("no seed", {"modulo": 1000}),
            ("seed", {"modulo": 2**31 - 1, "seed": 12345}),
            ("negative seed", {"modulo": 7, "seed": -3}),
        )
    ],
    case("no modulo", "IndexHash", i64(1)),
    case("modulo", "IndexHash", i32(1), modulo=2**31),
    case("floats", "IndexHash", f32(1), modulo=3),
    case("in place", "IndexHash", i64(5, 6), outputs=["X0"], modulo=3),
    case("empty", "IndexHash", i64(), modulo=3),
    case("floats", "BooleanMaskGradient", mask, f32(3, 4)),
    case("int64", "BooleanMaskGradient", mask, i64(3, 4)),
    case("nothing kept", "BooleanMaskGradient", mask & False, f32()),
    case("in place", "AsyncNetBarrier", rows, scores, outputs=["X0", "X1"]),
    case("in place", "DataCouple", rows, strings(b"a"), scores, outputs=["X0", "X1"]),
    case("elsewhere", "DataCouple", rows),
]
