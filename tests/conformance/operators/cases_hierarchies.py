# SPDX-License-Identifier: Apache-2.0
"""Trees of words, tensor trains, queues of rows."""

from __future__ import annotations

import numpy as np

from .case import Case, case

_random = np.random.RandomState(71)


def values(*shape: int) -> np.ndarray:
    return _random.randn(*shape).astype(np.float32)


def ints(*items: int) -> np.ndarray:
    return np.array(items, np.int32)


def longs(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


def number(field: int, value: int) -> bytes:
    assert value < 128
    return bytes([field << 3, value])


def inside(field: int, content: bytes) -> bytes:
    assert len(content) < 128 * 128
    size = len(content)
    return (
        bytes([field << 3 | 2, *([size & 127 | 128, size >> 7] if size > 127 else [size])])
        + content
    )


def node(offset: int, name: bytes, words: tuple[int, ...], *children: bytes) -> bytes:
    made = b"".join(inside(1, one) for one in children)
    made += b"".join(number(2, word) for word in words)
    return made + number(3, offset) + inside(4, name)


# 0 to 2 and 3, 4 below one node, 5 to 8 below the other.
PATHS = {
    **{w: [(0, 2, 0), (2, 2, 0), (4, 3, w)] for w in (0, 1, 2)},
    **{w: [(0, 2, 0), (2, 2, 1), (7, 2, w - 3)] for w in (3, 4)},
    **{w: [(0, 2, 1), (9, 4, w - 5)] for w in (5, 6, 7, 8)},
}
HIERARCHY = number(1, 13) + b"".join(
    inside(
        2,
        number(1, word)
        + b"".join(inside(2, number(1, i) + number(2, n) + number(3, t)) for i, n, t in path),
    )
    for word, path in PATHS.items()
)
TREE = inside(
    1,
    node(
        0,
        b"root",
        (),
        node(2, b"inner", (), node(4, b"a", (0, 1, 2)), node(7, b"b", (3, 4))),
        node(9, b"c", (5, 6, 7, 8)),
    ),
)
X, W, B = values(6, 5), values(13, 5), values(13)
LABELS = ints(0, 4, 8, 2, 5, 5)
TRAIN = {"factor_i": [2, 3, 2], "factor_j": [2, 1, 3], "ranks": [1, 2, 3, 1], "emb_size": 6}
CORES = [values(2, 1, 2, 2), values(3, 2, 1, 3), values(2, 3, 3, 1)]

CASES: list[Case] = [
    case("plain", "HSoftmax", X, W, B, LABELS, outputs=2, hierarchy=HIERARCHY),
    case(
        "no such label", "HSoftmax", X, W, B, ints(0, 4, 9, 2, 5, 5), outputs=2, hierarchy=HIERARCHY
    ),
    Case(
        "HSoftmax and gradient",
        {"x": X, "w": W, "b": B, "labels": LABELS, "dy": values(6)},
        [
            ("HSoftmax", ["x", "w", "b", "labels"], ["y", "kept"], {"hierarchy": HIERARCHY}),
            (
                "HSoftmaxGradient",
                ["x", "w", "b", "labels", "kept", "dy"],
                ["dx", "dw", "db", "dkept"],
                {"hierarchy": HIERARCHY},
            ),
        ],
    ),
    *[
        case(f"{beam}", "HSoftmaxSearch", X, W, B, outputs=2, tree=TREE, beam=beam, topN=n)
        for beam, n in ((5.0, 5), (1.0, 3), (0.5, 20))
    ],
    *[
        case(f"{i}", "HuffmanTreeHierarchy", labels, num_classes=n)
        for i, (n, labels) in enumerate(
            [
                (6, np.repeat(np.arange(6), np.arange(1, 7))),
                (5, longs(0, 1, 2, 3, 4)),
                (3, longs(0, 0, 1, 2)),
                (10, longs(*_random.randint(0, 10, 40))),
                (9, longs(*_random.randint(0, 9, 9))),
                (12, longs(*_random.randint(0, 6, 30))),
                (2, longs(1)),
            ]
        )
    ],
    *[
        case(
            f"{i}",
            "TT",
            values(3, int(np.prod(inner))),
            values(int(np.prod(outer))),
            values(sum(a * b * r * s for a, b, r, s in zip(inner, outer, ranks, ranks[1:]))),
            inp_sizes=inner,
            out_sizes=outer,
            tt_ranks=ranks,
        )
        for i, (inner, outer, ranks) in enumerate(
            [([2, 3], [3, 2], [1, 2, 1]), ([2, 2, 2], [2, 3, 1], [1, 3, 2, 1]), ([4], [3], [1, 1])]
        )
    ],
    case(
        "wrong",
        "TT",
        values(3, 6),
        values(6),
        values(5),
        inp_sizes=[2, 3],
        out_sizes=[3, 2],
        tt_ranks=[1, 2, 1],
    ),
    case(
        "plain",
        "TTSparseLengthsSum",
        *CORES,
        longs(0, 11, 5, 7, 3),
        ints(2, 0, 3),
        outputs=4,
        **TRAIN,
    ),
    Case(
        "TTSparseLengthsSum and gradient",
        {
            "c0": CORES[0],
            "c1": CORES[1],
            "c2": CORES[2],
            "i": longs(0, 11, 5, 7, 3, 5),
            "n": ints(2, 0, 4),
            "dy": values(3, 6),
        },
        [
            ("TTSparseLengthsSum", ["c0", "c1", "c2", "i", "n"], ["y", "a", "b", "at"], TRAIN),
            (
                "TTSparseLengthsSumGradient",
                ["c0", "c1", "c2", "n", "a", "b", "at", "dy"],
                ["d0", "d1", "d2"],
                {},
            ),
        ],
    ),
    case("plain", "ConcatBatchMatMulBatchGatherOp", ints(0, 1, 3, 2), values(3, 4), values(3, 4)),
    Case(
        "rows are batched anew",
        {"a": values(4, 2), "b": longs(1, 2, 3, 4)},
        [
            ("CreateRebatchingQueue", [], ["q"], {"capacity": 10, "num_blobs": 2}),
            ("EnqueueRebatchingQueue", ["q", "a", "b"], [], {"enqueue_batch": True}),
            ("DequeueRebatchingQueue", ["q"], ["x", "y"], {}),
            ("DequeueRebatchingQueue", ["q"], ["xs", "ys"], {"num_elements": 2}),
            ("EnqueueRebatchingQueue", ["q", "a", "b"], [], {}),
            ("CloseRebatchingQueue", ["q"], [], {}),
            ("DequeueRebatchingQueue", ["q"], ["x1", "y1"], {"num_elements": 1}),
            ("DequeueRebatchingQueue", ["q"], ["x2", "y2"], {"num_elements": 7}),
        ],
        ["x", "y", "xs", "ys", "x1", "y1", "x2", "y2"],
    ),
    Case(
        "a closed queue takes nothing",
        {"a": values(4, 2)},
        [
            ("CreateRebatchingQueue", [], ["q"], {"capacity": 10}),
            ("CloseRebatchingQueue", ["q"], [], {}),
            ("EnqueueRebatchingQueue", ["q", "a"], [], {}),
        ],
    ),
    Case(
        "an empty closed queue gives nothing",
        {},
        [
            ("CreateRebatchingQueue", [], ["q"], {"capacity": 10}),
            ("CloseRebatchingQueue", ["q"], [], {}),
            ("DequeueRebatchingQueue", ["q"], ["x"], {}),
        ],
    ),
]
