# SPDX-License-Identifier: Apache-2.0
"""Counters, indexes, maps: several operators on one blob."""

from __future__ import annotations

import numpy as np

from .case import Case, strings

text = strings(b"a", b"bc", b"a", b"")


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def index(kind: str, keys: np.ndarray, more: np.ndarray, name: str, **args: int) -> Case:
    """Keys looked up, frozen, looked up again, stored."""
    return Case(
        f"{kind} {name}",
        {"K": keys, "M": more},
        [
            (kind, [], ["I"], args),
            ("IndexGet", ["I", "K"], ["A"], {}),
            ("IndexSize", ["I"], ["S"], {}),
            ("IndexFreeze", ["I"], ["I"], {}),
            ("IndexGet", ["I", "M"], ["B"], {}),
            ("IndexStore", ["I"], ["T"], {}),
        ],
        ["A", "B", "S", "T"],
    )


CASES = [
    Case(
        "counter",
        {},
        [
            ("CreateCounter", [], ["C"], {"init_count": 1}),
            ("CountDown", ["C"], ["A"], {}),
            ("CheckCounterDone", ["C"], ["B"], {}),
            ("CountDown", ["C"], ["D"], {}),
            ("RetrieveCount", ["C"], ["E"], {}),
            ("CountUp", ["C"], ["F"], {}),
            ("ResetCounter", ["C"], ["G"], {"init_count": 7}),
            ("RetrieveCount", ["C"], ["H"], {}),
            ("ResetCounter", ["C"], [], {}),
            ("RetrieveCount", ["C"], ["I"], {}),
        ],
    ),
    Case("counter negative", {}, [("CreateCounter", [], ["C"], {"init_count": -1})]),
    Case("counter of a tensor", {"X": i64(1)}, [("CountDown", ["X"], ["A"], {})]),
    index("LongIndexCreate", i64(5, 7, 5, -1).reshape(2, 2), i64(7, 8), "simple"),
    index("IntIndexCreate", i32(5, 7, 5, -1), i32(7, 8), "simple"),
    index("StringIndexCreate", text, text[1:2], "simple"),
    index("LongIndexCreate", i64(5, 7, 5, -1), i64(7, 8), "full", max_elements=3),
    index("LongIndexCreate", i64(5, 7, 5), i64(7, 8), "just full", max_elements=3),
    index("LongIndexCreate", i32(5, 7), i32(7), "types"),
    Case(
        "index load",
        {"K": i64(0, 5, 7), "M": i64(7, 0, 9)},
        [
            ("LongIndexCreate", [], ["I"], {}),
            ("IndexLoad", ["I", "K"], ["I"], {"skip_first_entry": 1}),
            ("IndexGet", ["I", "M"], ["A"], {}),
            ("IndexSize", ["I"], ["S"], {}),
        ],
        ["A", "S"],
    ),
    Case(
        "index load twice",
        {"K": i64(5, 5)},
        [("LongIndexCreate", [], ["I"], {}), ("IndexLoad", ["I", "K"], ["I"], {})],
    ),
    Case(
        "map",
        {"K": i64(5), "V": i32(7)},
        [("KeyValueToMap", ["K", "V"], ["M"], {}), ("MapToKeyValue", ["M"], ["A", "B"], {})],
    ),
    Case(
        "map empty",
        {},
        [
            ("CreateMap", [], ["M"], {"key_dtype": 10, "value_dtype": 2}),
            ("MapToKeyValue", ["M"], ["A", "B"], {}),
        ],
    ),
    Case("map of strings", {}, [("CreateMap", [], ["M"], {"key_dtype": 4})]),
    Case("map sizes", {"K": i64(5, 6), "V": i32(7)}, [("KeyValueToMap", ["K", "V"], ["M"], {})]),
    Case(
        "fetch and add",
        {"X": i32(5), "Y": i32(7)},
        [("CreateMutex", [], ["M"], {}), ("AtomicFetchAdd", ["M", "X", "Y"], ["X", "A"], {})],
    ),
    Case(
        "fetch and add 64",
        {"X": i64(5), "Y": i64(2**40)},
        [("CreateMutex", [], ["M"], {}), ("AtomicFetchAdd64", ["M", "X", "Y"], ["X", "A"], {})],
    ),
    Case(
        "atomic bool",
        {"T": np.array([True]), "F": np.array([False])},
        [
            ("CreateAtomicBool", [], ["A"], {}),
            ("ConditionalSetAtomicBool", ["A", "F"], [], {}),
            ("CheckAtomicBool", ["A"], ["X"], {}),
            ("ConditionalSetAtomicBool", ["A", "T"], [], {}),
            ("CheckAtomicBool", ["A"], ["Y"], {}),
            ("ConditionalSetAtomicBool", ["A", "F"], [], {}),
            ("CheckAtomicBool", ["A"], ["Z"], {}),
        ],
        ["X", "Y", "Z"],
    ),
]
