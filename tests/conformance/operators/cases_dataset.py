# SPDX-License-Identifier: Apache-2.0
"""Columns of nested lists, read by cursors, packed, appended, trimmed."""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case, case, strings


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


FIELDS = ["a", "b:lengths", "b:values:lengths", "b:values:values", "c:lengths", "c:x"]
FEEDS: dict[str, Any] = {
    "a": np.arange(6, dtype=np.float32).reshape(3, 2),
    "bl": i32(2, 0, 1),
    "bvl": i32(1, 3, 0),
    "bvv": strings(b"p", b"q", b"", b"s"),
    "cl": i32(0, 1, 2),
    "cx": np.array([1.5, 2.5, 3.5]),
}
COLUMNS = list(FEEDS)
CURSOR = ("CreateTreeCursor", [], ["C"], {"fields": FIELDS})


MUTEX = ("CreateMutex", [], ["M"], {})


def trim(name: str, **args: int) -> Case:
    steps = [("TrimDataset", COLUMNS, COLUMNS, {"fields": FIELDS, **args})]
    return Case(f"TrimDataset {name}", FEEDS, steps)


def outs(n: int) -> list[str]:
    return [f"{name}{n}" for name in COLUMNS]


def read(n: int, **args: Any) -> tuple:
    return ("ReadNextBatch", ["C", *COLUMNS], outs(n), args)


def offset(n: int) -> tuple:
    return ("GetCursorOffset", ["C"], [f"O{n}"], {})


def reads(name: str, *steps: tuple, results: Any = None, **feeds: Any) -> Case:
    """A case on a cursor of the columns."""
    given = [*steps]
    made = [one for step in given for one in step[2] if one != "C"]
    return Case(name, {**FEEDS, **feeds}, [CURSOR, *given], results or list(dict.fromkeys(made)))


def shuffle(name: str, n: int = 10, **args: int) -> Case:
    feeds = {"k": (np.arange(n) * 7 % n).astype(np.int32), "v": np.arange(n, dtype=np.float64)}
    return Case(
        f"SortAndShuffle {name}",
        feeds,
        [
            ("CreateTreeCursor", [], ["C"], {"fields": ["k", "v"]}),
            ("SortAndShuffle", ["C", "k", "v"], ["Y"], args),
        ],
        ["Y"],
    )


def random_reads(name: str, n: int, **args: Any) -> Case:
    """Reads by a shuffled order; those past the end have results without a type there."""
    feeds = {**FEEDS, "order": i64(2, 0, 1)}
    feeds.update(bl=i32(2, 1, 1), bvl=i32(1, 2, 1, 1), bvv=strings(*b"p q r s t".split()))
    feeds.update(cl=i32(1, 1, 2), cx=np.arange(4.0))
    steps = [
        CURSOR,
        ("ComputeOffset", ["C", *COLUMNS], ["O"], {}),
        ("ResetCursor", ["C"], [], {}),
    ]
    given = ["C", "order", "O", *COLUMNS]
    steps += [("ReadRandomBatch", given, outs(i), args) for i in range(n)]
    results = ["O", *[one for i in range(n) for one in outs(i)]]
    return Case(f"ReadRandomBatch {name}", feeds, steps, results)


def consistency(name: str, **changed: Any) -> Case:
    return Case(
        f"CheckDatasetConsistency {name}",
        {**FEEDS, **changed},
        [("CheckDatasetConsistency", COLUMNS, [], {"fields": FIELDS})],
        [],
    )


def packed(name: str, *more: tuple, results: list[str], **args: Any) -> Case:
    return Case(
        f"PackRecords {name}",
        {**FEEDS, "I": i32(2, 0, 2)},
        [("PackRecords", COLUMNS, ["P"], {"fields": FIELDS, **args}), *more],
        results,
    )


def unpack(inputs: list[str], n: int = 0) -> tuple:
    return ("UnPackRecords", inputs, outs(n), {"fields": FIELDS})


def window(name: str, *steps: tuple, results: list[str], **feeds: Any) -> Case:
    given = {
        "N": np.array(0, np.int32),
        "L": np.zeros((0,), np.float32),
        "X": np.arange(6, dtype=np.float32).reshape(3, 2),
        **feeds,
    }
    return Case(f"LastNWindowCollector {name}", given, list(steps), results)


def collect(n: int, *more: str) -> tuple:
    outputs = ["L", "N", *more[1:]]
    return ("LastNWindowCollector", ["L", "N", "X", *more], outputs, {"num_to_collect": n})


x = np.arange(6, dtype=np.float32).reshape(3, 2)
text = strings(b"a", b"bc")
# fmt: off
CASES = [
    reads("offsets before", offset(0)),
    reads("one by one", read(0), offset(0), read(1), offset(1), read(2), read(3), offset(3)),
    reads("two", read(0, batch_size=2), offset(0), read(1, batch_size=2), read(2, batch_size=2)),
    reads("enforced", read(0, batch_size=2, enforce_batch_size=True),
          read(1, batch_size=2, enforce_batch_size=True), offset(1)),
    reads("reset", read(0), ("ResetCursor", ["C"], [], {}), offset(0), read(1, batch_size=5)),
    reads("more lengths than rows", read(0, batch_size=3), bvv=strings(b"p")),
    reads("lengths of int64", read(0), bl=i64(2, 0, 1)),
    reads("a number", read(0), a=np.array(3, np.float32)),
    reads("no rows", read(0), **{name: value[:0] for name, value in FEEDS.items()}),
    reads("too few columns", ("ReadNextBatch", ["C", "a"], ["Y"], {})),
    case("out of order", "CreateTreeCursor", fields=["a:x", "a:lengths"]),
    Case("no cursor", {"C": i32(1)}, [("ResetCursor", ["C"], [], {})]),
    reads("compute offsets", ("ComputeOffset", ["C", *COLUMNS], ["O"], {}), offset(0)),
    shuffle("defaults"),
    shuffle("sorted", sort_by_field_idx=0),
    shuffle("batches", sort_by_field_idx=0, batch_size=3, shuffle_size=1),
    shuffle("runs", sort_by_field_idx=0, batch_size=2, shuffle_size=2),
    shuffle("not sorted", sort_by_field_idx=-1, batch_size=2, shuffle_size=3),
    shuffle("one run", sort_by_field_idx=0, batch_size=2, shuffle_size=100),
    shuffle("more", n=101, sort_by_field_idx=0, batch_size=4, shuffle_size=5),
    shuffle("no field", sort_by_field_idx=2),
    shuffle("no batch", sort_by_field_idx=0, batch_size=0),
    random_reads("one by one", 3),
    random_reads("two", 2, batch_size=2),
    random_reads("over again", 4, batch_size=2, loop_over=True),
    random_reads("enforced", 1, batch_size=2, enforce_batch_size=True),
    random_reads("both", 4, batch_size=2, enforce_batch_size=True, loop_over=True),
    consistency("simple"),
    consistency("rows", cx=np.array([1.0])),
    consistency("lengths", bvl=i32(1, 3, 1)),
    consistency("fewer lengths", bl=i32(2, 0)),
    packed("rows", ("Shape", ["P"], ["S"], {}), unpack(["P"]), results=["S", *outs(0)]),
    packed("single", ("Shape", ["P"], ["S"], {}), unpack(["P"]), results=["S", *outs(0)],
           pack_to_single_shared_ptr=1),
    packed("gathered", ("Gather", ["P", "I"], ["G"], {}), unpack(["G"]), results=outs(0)),
    packed("prototypes", unpack(["P", *COLUMNS]), results=outs(0)),
    packed("wrong prototypes", unpack(["P", *COLUMNS[1:], "a"]), results=[]),
    packed("too few", ("UnPackRecords", ["P"], ["Y"], {"fields": FIELDS[:1]}), results=["Y"]),
    Case(
        "PackRecords none",
        {"a": x[:0]},
        [
            ("PackRecords", ["a"], ["P"], {"fields": ["a"]}),
            ("UnPackRecords", ["P", "a"], ["Y"], {"fields": ["a"]}),
            ("UnPackRecords", ["P"], ["Z"], {"fields": ["a"]}),
        ],
    ),
    Case(
        "PackRecords none with a prototype",
        {"a": x[:0]},
        [
            ("PackRecords", ["a"], ["P"], {"fields": ["a"]}),
            ("UnPackRecords", ["P", "a"], ["Y"], {"fields": ["a"]}),
        ],
        ["Y"],
    ),
    Case("PackRecords fields", {"a": x}, [("PackRecords", ["a"], ["P"], {"fields": ["a", "b"]})]),
    case("simple", "Append", x, x + 10, outputs=["X0"]),
    case("to nothing", "Append", x[:0], np.array([[1], [2]]), outputs=["X0"]),
    case("to nothing wide", "Append", np.zeros((2, 0), np.float32), x, outputs=["X0"]),
    case("nothing", "Append", x, x[:0], outputs=["X0"]),
    case("strings", "Append", text, text, outputs=["X0"]),
    case("types", "Append", x, x.astype(np.float64), outputs=["X0"]),
    case("sizes", "Append", x, x[:, :1], outputs=["X0"]),
    case("dimensions", "Append", x, x[0], outputs=["X0"]),
    case("not in place", "Append", x, x),
    Case(
        "AtomicAppend two",
        {"a": x, "b": text, "c": x + 1, "d": text},
        [
            ("CreateMutex", [], ["M"], {}),
            ("AtomicAppend", ["M", "a", "b", "c", "d"], ["a", "b"], {}),
        ],
        ["a", "b"],
    ),
    Case(
        "AtomicAppend six",
        {f"{k}{i}": x + i for k in "ab" for i in range(6)},
        [
            ("CreateMutex", [], ["M"], {}),
            (
                "AtomicAppend",
                ["M", *[f"{k}{i}" for k in "ab" for i in range(6)]],
                [f"a{i}" for i in range(6)],
                {},
            ),
        ],
        [f"a{i}" for i in range(6)],
    ),
    Case(
        "AtomicAppend second is wrong",
        {"a": x, "b": text, "c": x + 1, "d": x},
        [
            ("CreateMutex", [], ["M"], {}),
            ("AtomicAppend", ["M", "a", "b", "c", "d"], ["a", "b"], {}),
        ],
    ),
    trim("two", multiple_of=2),
    trim("one"),
    trim("all", multiple_of=9),
    trim("none", multiple_of=0),
    Case(
        "tensor vector",
        {"a": x, "b": text},
        [
            ("CreateTensorVector", [], ["V"], {}),
            ("CreateTensorVector", [], ["W"], {}),
            ("TensorVectorSize", ["V"], ["S0"], {}),
            ("CollectTensor", ["V", "W", "a", "b"], ["V", "W"], {"num_to_collect": 3}),
            ("CollectTensor", ["V", "W", "a", "b"], ["V", "W"], {"num_to_collect": 3}),
            ("TensorVectorSize", ["W"], ["S1"], {}),
            ("ConcatTensorVector", ["V"], ["Y0"], {}),
            ("ConcatTensorVector", ["W"], ["Y1"], {}),
        ],
        ["S0", "S1", "Y0", "Y1"],
    ),
    Case("tensor vector of nothing", {},
         [("CreateTensorVector", [], ["V"], {}), ("ConcatTensorVector", ["V"], ["Y"], {})]),
    Case("collect nothing", {"a": x},
         [("CreateTensorVector", [], ["V"], {}), ("CollectTensor", ["V", "a"], ["V"], {})]),
    window("fits", collect(5), results=["L", "N"]),
    window("twice", collect(5), collect(5), results=["L", "N"]),
    window("three times", collect(5), collect(5), collect(5), results=["L", "N"]),
    window("just full", collect(3), results=["L", "N"]),
    window("more than it takes", collect(2), results=["L", "N"]),
    window("one", collect(1), collect(1), results=["L", "N"]),
    window("empty", collect(4), results=["L", "N"], X=x[:0]),
    window("empty later", collect(4), ("Copy", ["E"], ["X"], {}), collect(4), results=["L", "N"],
           E=x[:0]),
    window("strings", collect(3), collect(3), results=["L", "N"], X=text),
    window("counted", ("CreateMutex", [], ["M"], {}), collect(4, "M", "V"), collect(4, "M", "V"),
           results=["L", "N", "V"], V=i64(7)),
    window("none", collect(0), results=["L", "N"]),
    window("other rows", collect(5), results=["L", "N"], L=np.ones((2, 3), np.float32)),
    window("a number", collect(5), results=["L", "N"], X=np.array(3, np.float32)),
    window("next is a list", collect(5), results=["L", "N"], N=i32(0)),
]
# fmt: on
