# SPDX-License-Identifier: Apache-2.0
# Methods and functions that torch writes in Python without the types of all their parts, as its
# documentation gives them; make_torch_stubs.py takes them from here.
from collections.abc import Sequence
from typing import Any, Literal, TypeAlias, overload

import torch
from torch import Generator

from bridge.at.tensor import Tensor
from bridge.c10.type_meta import TypeMeta
from bridge.wrapper import Wrapper

# Methods are named like the types: `bool`, `int`, `float`.
_bool: TypeAlias = bool
_int: TypeAlias = int
_float: TypeAlias = float
_str: TypeAlias = str
_Dtype: TypeAlias = torch.dtype | TypeMeta
_TensorLike: TypeAlias = Wrapper | torch.Tensor

class Methods:
    def cdouble(self) -> Tensor: ...
    def cfloat(self) -> Tensor: ...
    def dim_order(
        self, *, ambiguity_check: _bool | list[torch.memory_format] = ...
    ) -> tuple[_int, ...]: ...
    def is_shared(self) -> _bool: ...
    def norm(
        self,
        p: _float | _str | None = "fro",
        dim: _int | Sequence[_int] | None = None,
        keepdim: _bool = False,
        dtype: _Dtype | None = None,
    ) -> Tensor: ...
    def stft(
        self,
        n_fft: _int,
        hop_length: _int | None = None,
        win_length: _int | None = None,
        window: _TensorLike | None = None,
        center: _bool = True,
        pad_mode: _str = "reflect",
        normalized: _bool = False,
        onesided: _bool | None = None,
        return_complex: _bool | None = None,
        align_to_window: _bool | None = None,
    ) -> Tensor: ...
    def split(self, split_size: _int | Sequence[_int], dim: _int = 0) -> tuple[Tensor, ...]: ...
    @overload
    def unique(
        self,
        sorted: _bool = True,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: _int | None = None,
    ) -> Tensor: ...
    @overload
    def unique(
        self,
        sorted: _bool = True,
        return_inverse: _bool = False,
        return_counts: _bool = False,
        dim: _int | None = None,
    ) -> Any: ...
    @overload
    def unique_consecutive(
        self,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: _int | None = None,
    ) -> Tensor: ...
    @overload
    def unique_consecutive(
        self, return_inverse: _bool = False, return_counts: _bool = False, dim: _int | None = None
    ) -> Any: ...
    def to_sparse_coo(self) -> Tensor: ...

def atleast_1d(*tensors: Any) -> Any: ...
def atleast_2d(*tensors: Any) -> Any: ...
def atleast_3d(*tensors: Any) -> Any: ...
def block_diag(*tensors: _TensorLike) -> Tensor: ...
def broadcast_shapes(*shapes: _int | Sequence[_int]) -> tuple[_int, ...]: ...
@overload
def broadcast_tensors(tensors: Sequence[_TensorLike], /) -> tuple[Tensor, ...]: ...
@overload
def broadcast_tensors(*tensors: _TensorLike) -> tuple[Tensor, ...]: ...
def cartesian_prod(*tensors: _TensorLike) -> Tensor: ...
def cdist(
    x1: _TensorLike, x2: _TensorLike, p: _float = 2.0, compute_mode: _str = ...
) -> Tensor: ...
def chain_matmul(*matrices: _TensorLike, out: _TensorLike | None = None) -> Tensor: ...
def einsum(equation: _str, *operands: _TensorLike | Sequence[_TensorLike]) -> Tensor: ...
@overload
def meshgrid(
    tensors: Sequence[_TensorLike], /, *, indexing: _str | None = None
) -> tuple[Tensor, ...]: ...
@overload
def meshgrid(*tensors: _TensorLike, indexing: _str | None = None) -> tuple[Tensor, ...]: ...
def norm(
    input: _TensorLike,
    p: _float | _str | None = "fro",
    dim: _int | Sequence[_int] | None = None,
    keepdim: _bool = False,
    out: _TensorLike | None = None,
    dtype: _Dtype | None = None,
) -> Tensor: ...
def split(
    tensor: _TensorLike, split_size_or_sections: _int | Sequence[_int], dim: _int = 0
) -> tuple[Tensor, ...]: ...
def stft(
    input: _TensorLike,
    n_fft: _int,
    hop_length: _int | None = None,
    win_length: _int | None = None,
    window: _TensorLike | None = None,
    center: _bool = True,
    pad_mode: _str = "reflect",
    normalized: _bool = False,
    onesided: _bool | None = None,
    return_complex: _bool | None = None,
    align_to_window: _bool | None = None,
) -> Tensor: ...
def tensordot(
    a: _TensorLike, b: _TensorLike, dims: Any = 2, out: _TensorLike | None = None
) -> Tensor: ...
@overload
def unique(
    input: _TensorLike,
    sorted: _bool = True,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> Tensor: ...
@overload
def unique(
    input: _TensorLike,
    sorted: _bool = True,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
) -> Any: ...
@overload
def unique_consecutive(
    input: _TensorLike,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    dim: _int | None = None,
) -> Tensor: ...
@overload
def unique_consecutive(
    input: _TensorLike,
    return_inverse: _bool = False,
    return_counts: _bool = False,
    dim: _int | None = None,
) -> Any: ...
def is_tensor(obj: object) -> _bool: ...
def from_dlpack(ext_tensor: Any, *, device: Any = None, copy: _bool | None = None) -> Tensor: ...
def manual_seed(seed: _int) -> Generator: ...
def logsigmoid(input: _TensorLike) -> Tensor: ...
def set_default_dtype(d: _Dtype) -> None: ...
def unravel_index(indices: _TensorLike, shape: _int | Sequence[_int]) -> tuple[Tensor, ...]: ...
def lobpcg(
    A: _TensorLike,
    k: _int | None = None,
    B: _TensorLike | None = None,
    X: _TensorLike | None = None,
    n: _int | None = None,
    iK: _TensorLike | None = None,
    niter: _int | None = None,
    tol: _float | None = None,
    largest: _bool | None = None,
    method: _str | None = None,
    tracker: None = None,
) -> tuple[Tensor, Tensor]: ...
def svd_lowrank(
    A: _TensorLike, q: _int | None = 6, niter: _int | None = 2, M: _TensorLike | None = None
) -> tuple[Tensor, Tensor, Tensor]: ...
def pca_lowrank(
    A: _TensorLike, q: _int | None = None, center: _bool = True, niter: _int = 2
) -> tuple[Tensor, Tensor, Tensor]: ...
