# SPDX-License-Identifier: Apache-2.0
"""Rows of a quantized table selected by indices and summed by segments.

Scale and bias follow the numbers of each row, as written by `nbit_quantized` (float16) and
`rowwise_quantized` (float32). A sparse table, which lacks some rows, comes with a mapping (int32)
from indices to its rows, or to -1.

Follows lengths_reducer_fused_8bit_rowwise_ops.h and lengths_reducer_fused_nbit_rowwise_ops.h in
caffe2/operators, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.rows_and_segments import segment_ids, select_rows
from bridge.caffe2.operators.base.torch_operator import FLOAT, INT32, INTS, TorchOperator, enforce
from bridge.caffe2.operators.base.variants import register_variant
from bridge.caffe2.operators.quantized.nbit_quantized import unpacked
from bridge.caffe2.operators.quantized.rowwise_quantized import dequantized

__all__: list[str] = []


class _Indices(TorchOperator):
    """An operator on indices with lengths, and optional weights."""

    def indices(self, i: int) -> torch.Tensor:
        """Return the indices in input `i`."""
        indices = self.x(i, INTS)
        enforce(indices.dim() == 1, f"Input {i}, the indices, must have one dimension.")
        return indices

    def lengths(self, i: int) -> torch.Tensor:
        """Return the lengths in input `i`."""
        lengths = self.x(i, INT32)
        enforce(lengths.dim() == 1, f"Input {i}, the lengths, must have one dimension.")
        return lengths

    def weights(self, i: int, n: int) -> torch.Tensor:
        """Return the weights in input `i`. Raises EnforceNotMet: there are not `n`."""
        weights = self.x(i, FLOAT)
        enforce(
            weights.dim() == 1 and len(weights) == n,
            f"There are {n} indices, but weights of sizes {list(weights.shape)}.",
        )
        return weights

    def mapped(self, i: int, indices: torch.Tensor) -> torch.Tensor:
        """Return the rows of indices by the mapping in input `i`; -1: the row was removed."""
        mapping = self.x(i, INT32)
        return select_rows(mapping.reshape(-1), indices)


class _LookUp(_Indices):
    """Inputs: the table, weights if `weighted`, indices, lengths, the mapping if `sparse`."""

    bits = 4
    weighted = False
    mean = False
    sparse = False

    def RunOnDevice(self) -> None:
        table = self.x(0, (c10.uint8,))
        tail = 8 if self.bits == 8 else 4
        enforce(
            table.dim() == 2 and table.size(1) > tail,
            f"A table of sizes {list(table.shape)} has no rows with scale and bias.",
        )
        first = 1 + self.weighted
        indices, lengths = self.indices(first), self.lengths(first + 1)
        ids = segment_ids(lengths, len(indices))
        weights = self.weights(1, len(indices)) if self.weighted else None
        if self.sparse and not self._is_whole(first + 2):
            indices = self.mapped(first + 2, indices)
            there = indices != -1
            indices, ids = indices[there], ids[there]
            weights = weights[there] if weights is not None else None
        chosen = select_rows(table, indices)
        rows = dequantized(chosen, torch.float32) if self.bits == 8 else unpacked(chosen, self.bits)
        if weights is not None:
            rows = rows * weights[:, None]
        total = rows.new_zeros(len(lengths), rows.size(1)).index_add_(0, ids, rows)
        self.put(0, total / lengths.clamp(min=1)[:, None] if self.mean else total)

    def _is_whole(self, i: int) -> bool:
        """Return whether the mapping is just 0, which means that no rows were removed."""
        mapping = self.x(i, INT32)
        return mapping.numel() == 1 and int(mapping.reshape(-1)[0]) == 0


for _kind, _attributes in (
    ("Sum", {}),
    ("WeightedSum", {"weighted": True}),
    ("Mean", {"mean": True}),
):
    for _bits in (2, 4, 8):
        register_variant(
            f"SparseLengths{_kind}Fused{_bits}BitRowwise", _LookUp, bits=_bits, **_attributes
        )
        register_variant(
            f"SparseLengths{_kind}{_bits}BitRowwiseSparse",
            _LookUp,
            bits=_bits,
            sparse=True,
            **_attributes,
        )


@register_operator("SparseLengthsSumSparseLookup")
class SparseLengthsSumSparseLookup(_Indices):
    """Map indices to rows of a sparse table, dropping those mapped to -1.

    Inputs: indices, lengths, the mapping, optionally weights.
    Outputs: the rows, lengths, weights.
    """

    def RunOnDevice(self) -> None:
        indices, lengths = self.indices(0), self.lengths(1)
        enforce(self.Input(2).dim() == 1, "Input 2, the mapping, must have one dimension.")
        enforce(bool((lengths >= 0).all()), "Lengths must not be negative.")
        n = int(lengths.sum())
        enforce(
            n <= len(indices), f"The lengths add up to {n}, but there are {len(indices)} indices."
        )
        weights = self.weights(3, len(indices)) if self.InputSize() > 3 else None
        enforce(self.OutputSize() == 3 or weights is None, "Weights, input 3, need an output 2.")
        enforce(self.OutputSize() == 2 or weights is not None, "Output 2 needs weights, input 3.")
        ids = segment_ids(lengths)
        rows = self.mapped(2, indices[:n])
        there = rows != -1
        self.put(0, rows[there].to(indices.dtype))
        self.put(1, torch.bincount(ids[there], minlength=len(lengths)).int())
        if weights is not None:
            self.put(2, weights[:n][there])
