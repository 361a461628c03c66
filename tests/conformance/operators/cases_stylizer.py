# SPDX-License-Identifier: Apache-2.0
"""Packed images, packed weights, functions of torch, an LSTM for inference."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(73)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def weights(layers: int, d: int, h: int, biases: bool, directions: int = 1) -> list[np.ndarray]:
    found = []
    for layer in range(layers):
        for _ in range(directions):
            found += [values(4 * h, d if layer == 0 else h * directions), values(4 * h, h)]
            found += [values(4 * h), values(4 * h)] if biases else []
    return found


MEAN = np.array([1.0, 2.5, 3.0], np.float32)
LARGE = values(3, 4)
LARGE[0, 0] = 1e6

CASES: list[Case] = [
    case(
        "plain",
        "PackedInt8BGRANHWCToNCHWCStylizerPreprocess",
        _random.randint(0, 256, (2, 3, 5, 4)).astype(np.uint8),
        MEAN,
        noise_std=0.0,
    ),
    case("plain", "BRGNCHWCToPackedInt8BGRAStylizerDeprocess", 200 * values(2, 3, 4, 5), MEAN),
    *[
        case(
            f"{layers} {biases} {first} {directions}",
            "InferenceLSTM",
            values(3, 2, 4) if not first else values(2, 3, 4),
            values(layers * directions, 2, 5),
            values(layers * directions, 2, 5),
            *weights(layers, 4, 5, biases, directions),
            outputs=3,
            num_layers=layers,
            has_biases=biases,
            batch_first=first,
            bidirectional=directions == 2,
        )
        for layers, biases, first, directions in (
            (1, True, False, 1),
            (2, True, False, 1),
            (2, True, True, 1),
            (1, True, False, 2),
        )
    ],
    *[
        Case(
            f"{pack} {axis}",
            {"x": values(2, 2, 2) if axis == 1 else values(2, 3, 4), "w": w, "b": values(3)},
            [(pack, ["w"], ["p"], {}), ("FbFCPacked", ["x", "p", "b"], ["y"], {"axis": axis})],
            ["y"],
        )
        for pack, w in (("FbGemmPack", values(3, 4)), ("FbGemmPackTranspose", values(4, 3)))
        for axis in (1, 2)
    ],
    case("add", "ATen", values(2, 3), values(2, 3), operator="add"),
    case("sum", "ATen", values(2, 3), operator="sum"),
    case("pow", "ATen", abs(values(2, 3)), operator="pow", exponent=2.5),
    case("topk", "ATen", values(2, 3), outputs=2, operator="topk", k=2),
    case("sort", "ATen", values(2, 3), outputs=2, operator="sort"),
    case("transpose", "ATen", values(2, 3), operator="transpose", dim0=0, dim1=1),
    case("cat", "ATen", values(2, 3), values(4, 3), operator="cat", dim=0),
    case("no such", "ATen", values(2, 3), operator="no_such_function"),
    case("text", "FeedBlob", value="abc"),
    Case(
        "a reservoir with room keeps all rows",
        {"r": np.zeros(0, np.float32), "n": np.zeros(1, np.int64), "x": values(4, 2)},
        [
            ("CreateMutex", [], ["m"], {}),
            ("ReservoirSampling", ["r", "n", "x", "m"], ["r", "n"], {"num_to_collect": 9}),
            ("ReservoirSampling", ["r", "n", "x", "m"], ["r", "n"], {"num_to_collect": 9}),
        ],
        ["r", "n"],
    ),
    Case(
        "a reservoir keeps an object once",
        {
            "r": np.zeros(0, np.float32),
            "n": np.zeros(1, np.int64),
            "x": values(4, 2),
            "id": np.array([3, 5, 3, 7]),
            "at": np.zeros(0, np.int64),
        },
        [
            ("CreateMutex", [], ["m"], {}),
            ("CreateMap", [], ["map"], {"key_dtype": 10, "value_dtype": 2}),
            (
                "ReservoirSampling",
                ["r", "n", "x", "m", "id", "map", "at"],
                ["r", "n", "map", "at"],
                {"num_to_collect": 9},
            ),
        ],
        ["r", "n", "at"],
    ),
]
