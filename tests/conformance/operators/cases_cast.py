# SPDX-License-Identifier: Apache-2.0
"""Elements chosen by masks, and of other types."""

from __future__ import annotations

import numpy as np

from .case import case, strings

r = np.random.RandomState(1)
x = r.randn(2, 3, 4).astype(np.float32)
x234 = np.arange(24, dtype=np.int64).reshape(2, 3, 4)
image = r.randn(2, 3, 4, 5).astype(np.float32)
one = np.array([3.5], np.float32)
scalar = np.array(2.5, np.float32)
empty = np.zeros((0, 3), np.float32)
text = strings(b"a", b"bc", b"", b"\xff\x00", b"e", b"f").reshape(2, 3)
flags = np.array([True, False, True])
TYPES = (np.float32, np.float64, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16,
         np.float16, np.bool_)  # fmt: skip


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


CASES = [
    case("floats", "BooleanMask", x[0], flags),
    case("indices", "BooleanMask", x[0], flags, outputs=2),
    case("none", "BooleanMask", x[0], ~flags & flags, outputs=2),
    case("strings", "BooleanMask", text.reshape(3, 2), flags, outputs=2),
    case("wrong size", "BooleanMask", x, flags),
    case("not bool", "BooleanMask", x[0], i32(1, 0, 1)),
    case("empty", "BooleanMask", empty, flags[:0], outputs=2),
    case("simple", "BooleanMaskLengths", i32(2, 0, 3), np.array([1, 0, 1, 1, 0], np.bool_)),
    case("int64", "BooleanMaskLengths", i64(2, 0, 3), np.array([1, 0, 1, 1, 0], np.bool_)),
    case("wrong", "BooleanMaskLengths", i32(2, 0, 2), np.array([1, 0, 1, 1, 0], np.bool_)),
    case("simple", "BooleanUnmask", flags, x[0, 0, :2], ~flags, x[0, 1, :1]),
    case("first wins", "BooleanUnmask", flags, x[0, 0, :2], flags | True, x[0, 1, :1]),
    case("too many", "BooleanUnmask", flags, x[0, 0, :2], flags | True, x[0, 1, :3]),
    case("one", "BooleanUnmask", flags | True, i32(5, 6, 7)),
    case("gap", "BooleanUnmask", flags, x[0, 0, :2], flags, x[0, 1, :2]),
    # Cast
    *[
        case(f"{np.dtype(t).name} to {to}", "Cast",
             np.array([0, 1, 2, 100, 55] if t is np.bool_ or np.dtype(t).kind == "u"
                      else [0, 1.7, -2.5, 100, -5.5]).astype(t), to=to)
        for t in TYPES
        for to in (1, 2, 5, 6, 7, 8, 9, 10, 13)
    ],
    case("by name", "Cast", x, to="int32"),
    case("by name float", "Cast", x234, to="FLOAT"),
    case("by name mixed", "Cast", x, to="Int64"),
    case("default", "Cast", x234),
    case("in place", "Cast", x, to=2, outputs=["X0"]),
    case("in place same", "Cast", x, to=1, outputs=["X0"]),
    case("large", "Cast", np.array([300.0, -1.0, 70000.0, 1e9], np.float32), to=6),
    case("to half", "Cast", x, to=12),
    case("to string", "Cast", x, to=4),
    case("int to string", "Cast", x234, to=4),
    case("bool to string", "Cast", flags, to="string"),
    case("odd to string", "Cast", np.array([np.nan, np.inf, -1e10, 1e-7, 0.5]), to=4),
    case("to byte", "Cast", x, to=3),
    case("to nothing", "Cast", x, to=0),
    case("unknown name", "Cast", x, to="fluffy"),
    case("strings", "Cast", text, to=1),
    case("scalar", "Cast", scalar, to=10),
    case("empty", "Cast", empty, to=10),
    case("simple", "FloatToHalf", x),
    case("large", "FloatToHalf", np.array([65504, 65520, 1e6, 1e-8, -1e-5], np.float32)),
    case("simple", "HalfToFloat", x.astype(np.float16)),
    case("double", "FloatToHalf", x.astype(np.float64)),
]  # fmt: skip
