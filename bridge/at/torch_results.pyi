# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_torch_stubs.py from the stubs of torch 2.13.0; do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, misc, type-arg"
# pyright: reportOverlappingOverload=false, reportInconsistentOverload=false
from typing import NamedTuple

from bridge.at.tensor import Tensor

__all__ = ['aminmax_result', 'cummax_result', 'cummin_result', 'frexp_result', 'geqrf_result', 'histogram_result', 'histogramdd_result', 'kthvalue_result', 'lu_unpack_result', 'max_result', 'median_result', 'min_result', 'mode_result', 'nanmedian_result', 'qr_result', 'slogdet_result', 'sort_result', 'svd_result', 'topk_result', 'triangular_solve_result']

class aminmax_result(NamedTuple):
    min: Tensor
    max: Tensor

class cummax_result(NamedTuple):
    values: Tensor
    indices: Tensor

class cummin_result(NamedTuple):
    values: Tensor
    indices: Tensor

class frexp_result(NamedTuple):
    mantissa: Tensor
    exponent: Tensor

class geqrf_result(NamedTuple):
    a: Tensor
    tau: Tensor

class histogram_result(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class histogramdd_result(NamedTuple):
    hist: Tensor
    bin_edges: Tensor

class kthvalue_result(NamedTuple):
    values: Tensor
    indices: Tensor

class lu_unpack_result(NamedTuple):
    P: Tensor
    L: Tensor
    U: Tensor

class max_result(NamedTuple):
    values: Tensor
    indices: Tensor

class median_result(NamedTuple):
    values: Tensor
    indices: Tensor

class min_result(NamedTuple):
    values: Tensor
    indices: Tensor

class mode_result(NamedTuple):
    values: Tensor
    indices: Tensor

class nanmedian_result(NamedTuple):
    values: Tensor
    indices: Tensor

class qr_result(NamedTuple):
    Q: Tensor
    R: Tensor

class slogdet_result(NamedTuple):
    sign: Tensor
    logabsdet: Tensor

class sort_result(NamedTuple):
    values: Tensor
    indices: Tensor

class svd_result(NamedTuple):
    U: Tensor
    S: Tensor
    V: Tensor

class topk_result(NamedTuple):
    values: Tensor
    indices: Tensor

class triangular_solve_result(NamedTuple):
    solution: Tensor
    cloned_coefficient: Tensor
