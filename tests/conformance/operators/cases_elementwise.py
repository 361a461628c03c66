# SPDX-License-Identifier: Apache-2.0
"""Functions of one number and of two, broadcast, and of several inputs."""

from __future__ import annotations

import numpy as np

from .case import case, strings

r = np.random.RandomState(2)
x = r.randn(3, 4).astype(np.float32)
y = r.randn(3, 4).astype(np.float32)
unit = r.uniform(-0.99, 0.99, (3, 4)).astype(np.float32)
positive = r.uniform(0.01, 30, (3, 4)).astype(np.float32)
big = r.randn(2, 3, 4, 5).astype(np.float32)
odd = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-30, -1e30], np.float32)
odd2 = np.array([1, np.nan, 2, -1, np.nan, np.inf, 0], np.float32)
integers = r.randint(-50, 50, (3, 4))
nonzero = np.where(integers == 0, 7, integers)
flags = r.rand(3, 4) < 0.5
flags2 = r.rand(3, 4) < 0.5
scalar = np.array(2.5, np.float32)
one = np.array([2.5], np.float32)
empty = np.zeros((0, 4), np.float32)
DOMAINS = {"Acos": unit, "Asin": unit, "Log": positive, "Rsqrt": positive, "Sqrt": positive}
UNARY = ["Abs", "Acos", "Asin", "Atan", "Cbrt", "Ceil", "Cos", "Cosh", "Cube", "Erf", "Exp",
         "Floor", "Log", "Negative", "Reciprocal", "Rsqrt", "Sign", "Sin", "Sinh", "Sqr", "Sqrt",
         "Tan"]  # fmt: skip
IN_PLACE = ["Ceil", "Cube", "Exp", "Floor", "Log", "Negative", "Reciprocal", "Rsqrt", "Sqr", "Sqrt"]
ARITHMETIC = ["Add", "Sub", "Mul", "Div"]
COMPARISONS = ["EQ", "NE", "LT", "LE", "GT", "GE"]
BITS = ["BitwiseAnd", "BitwiseOr", "BitwiseXor"]
LOGIC = ["And", "Or", "Xor"]


def binary(op: str, a: np.ndarray, b: np.ndarray) -> list:
    """Each way of broadcasting."""
    c = np.ascontiguousarray
    return [
        case("same", op, a, b),
        case("row", op, a, c(b[:1])),
        case("vector", op, a, c(b[0])),
        case("column", op, a, c(b[:, :1])),
        case("other way", op, c(a[0]), b),
        case("both", op, c(a[:1]), c(b[:, :1])),
        case("number", op, a, c(b[:1, :1]).reshape(1)),
        case("0-d", op, a, np.array(b[0, 0])),
        case("empty", op, a[:0], b[:0]),
        case("legacy same", op, a, b, broadcast=1),
        case("legacy vector", op, a, c(b[0]), broadcast=1),
        case("legacy axis", op, a, c(b[:, 0]), broadcast=1, axis=0),
        case("legacy number", op, a, c(b[:1, :1]).reshape(1), broadcast=1),
        case("legacy number axis", op, a, c(b[:1, :1]).reshape(1), broadcast=1, axis=1),
        case("no broadcast", op, a, c(b[:, :3])),
        case("legacy wrong", op, a, c(b[:, 0]), broadcast=1),
    ]


CASES = [
    *[case("floats", op, DOMAINS.get(op, x)) for op in UNARY],
    *[case("odd", op, odd) for op in UNARY],
    *[case("empty", op, empty) for op in UNARY],
    *[case("0-d", op, np.array(0.5, np.float32)) for op in UNARY],
    *[case("in place", op, DOMAINS.get(op, x), outputs=["X0"]) for op in UNARY],
    *[case("double", op, positive.astype(np.float64) / 40) for op in UNARY],
    *[case("int32", op, integers.astype(np.int32)) for op in UNARY],
    *[case("int64", op, integers) for op in ("Cube", "Negative", "Sign")],
    case("simple", "Not", flags),
    case("in place", "Not", flags, outputs=["X0"]),
    case("floats", "Not", x),
    *[one_case for op in ARITHMETIC for one_case in binary(op, x, y)],
    *[one_case for op in COMPARISONS for one_case in binary(op, np.round(x), np.round(y))],
    *[one_case for op in LOGIC for one_case in binary(op, flags, flags2)],
    *[one_case for op in BITS for one_case in binary(op, integers, nonzero)],
    *[case("double", op, x.astype(np.float64), y.astype(np.float64)) for op in ARITHMETIC],
    *[case("int32", op, integers.astype(np.int32), nonzero.astype(np.int32))
      for op in ARITHMETIC + COMPARISONS + BITS],
    *[case("int64", op, integers, nonzero) for op in ARITHMETIC + COMPARISONS],
    *[case("bool", op, flags, flags2) for op in COMPARISONS + BITS + ARITHMETIC],
    *[case("odd", op, odd, odd2) for op in ARITHMETIC + COMPARISONS],
    *[case("types", op, x, integers) for op in ARITHMETIC + COMPARISONS],
    *[case("uint8", op, integers.astype(np.uint8), integers.astype(np.uint8))
      for op in ("Add", "EQ", "BitwiseAnd", "Or")],
    *[case("in place", op, x, y, outputs=["X0"]) for op in ARITHMETIC],
    *[case("in place 1", op, x, y, outputs=["X1"]) for op in ARITHMETIC],
    *[case("in place row", op, x, y[0], outputs=["X0"]) for op in ARITHMETIC],
    *[case("in place 1 row", op, x[0], y, outputs=["X1"]) for op in ARITHMETIC],
    *[case("in place too small", op, x[0], y, outputs=["X0"]) for op in ARITHMETIC],
    case("legacy in place 1", "Add", x, y, broadcast=1, outputs=["X1"]),
    case("in place", "And", flags, flags2, outputs=["X0"]),
    case("in place", "EQ", flags, flags2, outputs=["X0"]),
    case("numpy 4-d", "Add", big, big[:, :1, :, :1]),
    case("numpy 5-d", "Mul", big, big[None, 0, :, :1]),
    case("channels", "Add", big, big[0, :, 0, 0], broadcast=1, axis=1),
    case("inner", "Add", big, big[0, :, :, 0], broadcast=1, axis=1),
    case("outer ones", "Add", big, big[:1, :, :1, :1], broadcast=1, axis=0),
    case("stretched inside", "Add", big, big[:, :1], broadcast=1),
    case("axis string", "Mul", big, big[0, :, 0, 0], broadcast=1, axis_str="C"),
    case("axis string order", "Mul", big, big[0, 0, 0], broadcast=1, axis_str="C", order="NHWC"),
    case("axis string unknown", "Mul", big, big[0, :, 0, 0], broadcast=1, axis_str="Q"),
    case("axis string long", "Mul", big, big[0, :, 0, 0], broadcast=1, axis_str="CH"),
    case("axis and string", "Mul", big, big[0, :, 0, 0], broadcast=1, axis_str="C", axis=1),
    case("axis too far", "Add", big, big[0, :, 0, 0], broadcast=1, axis=4),
    case("axis without broadcast", "Add", x, y, axis=1),
    case("input 1 larger", "Add", x[0], y, broadcast=1),
    case("float by zero", "Div", x, np.zeros_like(x)),
    case("integer by zero", "Div", integers, np.zeros_like(integers)),
    case("toward zero", "Div", np.array([7, -7, 7, -7]), np.array([2, 2, -2, -2])),
    case("strings", "Add", strings(b"a"), strings(b"b")),
    # Pow
    case("square", "Pow", x, exponent=2.0),
    case("root", "Pow", positive, exponent=0.5),
    case("inverse", "Pow", x, exponent=-1.0),
    case("zero", "Pow", x, exponent=0.0),
    case("in place", "Pow", x, exponent=3.0, outputs=["X0"]),
    case("two", "Pow", positive, y),
    case("row", "Pow", positive, y[0], broadcast=1),
    case("axis", "Pow", positive, y[:, 0], broadcast=1, axis=0),
    case("number", "Pow", positive, one, broadcast=1),
    case("channels", "Pow", np.abs(big), big[0, :, 0, 0], broadcast=1, axis=1),
    case("sizes", "Pow", positive, y[0]),
    case("axis alone", "Pow", positive, y, axis=1),
    case("no exponent", "Pow", x),
    case("double", "Pow", positive.astype(np.float64), exponent=2.0),
    # Several inputs
    *[case(f"of {n}", op, *[x, y, unit, positive][:n]) for n in (1, 2, 3, 4)
      for op in ("Sum", "Mean", "Max", "Min", "SumInt")],
    *[case("in place", op, x, y, unit, outputs=["X0"]) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("in place 1", op, x, y, unit, outputs=["X1"]) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("sizes", op, x, x[:1]) for op in ("Sum", "Mean")],
    *[case("odd", op, odd, odd2) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("empty", op, empty, empty) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("0-d", op, scalar, scalar) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("double", op, x.astype(np.float64), y.astype(np.float64))
      for op in ("Sum", "Mean", "Max", "Min")],
    *[case("int32", op, integers.astype(np.int32), nonzero.astype(np.int32))
      for op in ("Sum", "Mean", "Max", "Min", "SumInt")],
    *[case("int64", op, integers, nonzero) for op in ("Sum", "Mean", "Max", "Min")],
    *[case("types", op, x, integers) for op in ("Sum", "Mean", "Max", "Min")],
    case("one of strings", "Sum", strings(b"a")),
    case("one", "WeightedSum", x, one),
    case("two", "WeightedSum", x, one, y, one * 2),
    case("three", "WeightedSum", x, one, y, one * 2, unit, -one),
    case("in place", "WeightedSum", x, one, y, one * 2, outputs=["X0"]),
    case("in place 2", "WeightedSum", x, one, y, one * 2, outputs=["X2"]),
    case("reshaped", "WeightedSum", x, one, y.reshape(4, 3), one),
    case("odd number", "WeightedSum", x, one, y),
    case("sizes", "WeightedSum", x, one, y[:1], one),
    case("weight", "WeightedSum", x, y),
    case("empty", "WeightedSum", empty, one),
    # Others
    case("simple", "Scale", x, scale=2.5),
    case("default", "Scale", x),
    case("in place", "Scale", x, scale=-1.5, outputs=["X0"]),
    case("double", "Scale", x.astype(np.float64), scale=0.1),
    case("int32", "Scale", integers.astype(np.int32), scale=2.0),
    case("both", "Clip", x, min=-0.5, max=0.5),
    case("min", "Clip", x, min=-0.5),
    case("max", "Clip", x, max=0.5),
    case("none", "Clip", x),
    case("odd", "Clip", odd, min=-1.0, max=1.0),
    case("odd none", "Clip", odd),
    case("in place", "Clip", x, min=0.0, outputs=["X0"]),
    case("crossed", "Clip", x, min=1.0, max=-1.0),
    case("double", "Clip", x.astype(np.float64), min=0.0),
    case("all", "EnsureClipped", x, min=-0.5, max=0.5, outputs=["X0"]),
    case("rows", "EnsureClipped", x, np.array([0, 2], np.int64), y[:2], min=-0.1, max=0.1,
         outputs=["X0"]),
    case("scaled", "ClipTensorByScaling", x, np.array([4], np.float32), threshold=2.0),
    case("as it is", "ClipTensorByScaling", x, np.array([1], np.float32), threshold=2.0),
    case("in place", "ClipTensorByScaling", x, np.array([4], np.float32), threshold=2.0,
         outputs=["X0"]),
    case("factor", "ClipTensorByScaling", x, np.array([4], np.float32), one, threshold=0.5),
    case("simple", "IsNaN", odd),
    case("double", "IsNaN", odd.astype(np.float64)),
    case("int32", "IsNaN", integers.astype(np.int32)),
    case("simple", "ReplaceNaN", odd),
    case("value", "ReplaceNaN", odd, value=3.5),
    case("in place", "ReplaceNaN", odd, value=3.5, outputs=["X0"]),
    case("double", "ReplaceNaN", odd.astype(np.float64), value=0.1),
    case("simple", "Mod", integers, divisor=7),
    case("follow", "Mod", integers, divisor=7, sign_follow_divisor=1),
    case("negative", "Mod", integers, divisor=-7),
    case("negative follow", "Mod", integers, divisor=-7, sign_follow_divisor=1),
    case("int32", "Mod", integers.astype(np.int32), divisor=3),
    case("in place", "Mod", integers, divisor=3, outputs=["X0"]),
    case("zero", "Mod", integers, divisor=0),
    case("floats", "Mod", x, divisor=2),
]  # fmt: skip
