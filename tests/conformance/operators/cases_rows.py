# SPDX-License-Identifier: Apache-2.0
"""Rows scaled, permuted, normalized, quantized."""

from __future__ import annotations

import numpy as np

from .case import Case, case

r = np.random.RandomState(7)
x = r.randn(5, 6).astype(np.float32)
x4 = r.randn(2, 3, 4, 5).astype(np.float32)
table = r.randn(10, 7).astype(np.float32)
weights = r.rand(6).astype(np.float32)


def i32(*values: int) -> np.ndarray:
    return np.array(values, np.int32)


def i64(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


lengths = i32(2, 0, 3, 1)
indices = i64(9, 0, 3, 3, 5, 1)
QUANTIZE = {
    "FloatToFused8BitRowwiseQuantized": "Fused8BitRowwiseQuantizedToFloat",
    "FloatToFused8BitRowwiseQuantizedHalfScaleBias":
        "Fused8BitRowwiseQuantizedHalfScaleBiasToFloat",
    "HalfFloatToFused8BitRowwiseQuantized": "Fused8BitRowwiseQuantizedToHalfFloat",
    "HalfFloatToFused8BitRowwiseQuantizedHalfScaleBias":
        "Fused8BitRowwiseQuantizedHalfScaleBiasToHalfFloat",
}  # fmt: skip
CASES = [
    Case("ScaleBlobs two", {"X": x, "Y": x4}, [("ScaleBlobs", ["X", "Y"], ["A", "B"],
         {"scale": 2.5})]),
    case("simple", "SquareRootDivide", x, f32(1, 4, 0, 2, 9)),
    case("int32", "SquareRootDivide", x, i32(1, 4, 0, 2, 9)),
    case("int64", "SquareRootDivide", x4, i64(1, 4)),
    case("negative", "SquareRootDivide", x, f32(1, 4, 0, -2, 9)),
    case("wrong", "SquareRootDivide", x, f32(1, 4)),
    case("simple", "BatchPermutation", x, i32(3, 0, 4, 1, 2)),
    case("4-d", "BatchPermutation", x4, i32(1, 0)),
    case("simple", "SparseNormalize", x, i64(0, 3), outputs=["X0"]),
    case("norm", "SparseNormalize", x, i32(0, 3), norm=0.5, outputs=["X0"]),
    case("always", "SparseNormalize", x * 0.1, i64(0, 3), use_max_norm=False, outputs=["X0"]),
    case("short", "SparseNormalize", x * 0.1, i64(0, 3), outputs=["X0"]),
    case("half", "Float16SparseNormalize", x.astype(np.float16), i64(0, 3), outputs=["X0"]),
    case("two", "SparseLpRegularizer", x, i64(0, 3), reg_lambda=0.1, outputs=["X0"]),
    case("one", "SparseLpRegularizer", x, i32(0, 3), p=1.0, reg_lambda=0.5, outputs=["X0"]),
    case("three", "SparseLpRegularizer", x, i32(0, 3), p=3.0, reg_lambda=0.5, outputs=["X0"]),
    case("simple", "ReduceFrontWeightedSum", x, weights[:5]),
    case("4-d", "ReduceFrontWeightedSum", x4, weights[:2]),
    case("vector", "ReduceFrontWeightedSum", x[0], weights),
    case("last", "SumReduceLike", x4, x4[0, 0]),
    case("first", "SumReduceLike", x4, x4[:, :, 0, 0], axis=0),
    case("middle", "SumReduceLike", x4, x4[0, :, :, 0], axis=1),
    case("name", "SumReduceLike", x4, x4[0, :, 0, 0], axis_str="C", order="NCHW"),
    case("number", "SumReduceLike", x4, f32(1)),
    case("same", "SumReduceLike", x, x),
    case("double", "SumReduceLike", x.astype(np.float64), x[0].astype(np.float64)),
    case("wrong", "SumReduceLike", x, x[:, 0]),
    case("simple", "VariableLengthSequencePadding", x4[0], i32(1, 3, 2, 0), outputs=["X0"]),
    case("simple", "SinusoidPositionEncoding", i32(1, 1, 5, 5, 9, 9).reshape(3, 2),
         embedding_size=8),
    case("int64", "SinusoidPositionEncoding", i64(1, 3, 200).reshape(3, 1), embedding_size=5,
         alpha=100.0, amplitude=2.5),
    case("zero", "SinusoidPositionEncoding", i64(0).reshape(1, 1), embedding_size=4),
    *[case("simple", name, table.astype(np.float16 if name.startswith("Half") else np.float32))
      for name in QUANTIZE],
    *[case("constant", name, np.full((2, 3), 0.25, np.float16 if name.startswith("Half")
                                     else np.float32)) for name in QUANTIZE],
    *[Case(f"{back} round trip", {"X": table.astype(np.float16 if name.startswith("Half")
                                                    else np.float32)},
           [(name, ["X"], ["Q"], {}), (back, ["Q"], ["Y"], {})], ["Y"])
      for name, back in QUANTIZE.items()],
    *[Case(f"{name} simple", {"X": table, "W": weights, "I": indices, "L": lengths},
           [("FloatToFused8BitRowwiseQuantized", ["X"], ["Q"], {}),
            (name, ["Q", *(["W"] if "Weighted" in name else []), "I", "L"], ["Y"], {})], ["Y"])
      for name in ("SparseLengthsSumFused8BitRowwise", "SparseLengthsMeanFused8BitRowwise",
                   "SparseLengthsWeightedSumFused8BitRowwise")],
    Case("GatherFused8BitRowwise simple", {"X": table, "I": indices},
         [("FloatToFused8BitRowwiseQuantized", ["X"], ["Q"], {}),
          ("GatherFused8BitRowwise", ["Q", "I"], ["Y"], {})], ["Y"]),
    case("simple", "FloatToRowwiseQuantized8Bits", table, outputs=2),
    Case("Rowwise8BitQuantizedToFloat round trip", {"X": table},
         [("FloatToRowwiseQuantized8Bits", ["X"], ["Q", "S"], {}),
          ("Rowwise8BitQuantizedToFloat", ["Q", "S"], ["Y"], {})], ["Y"]),
]  # fmt: skip
