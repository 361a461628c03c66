# SPDX-License-Identifier: Apache-2.0
"""Linear algebra of the array API standard: the extension ``linalg``.

Its `MAIN` are in the main namespace, too.
"""

from __future__ import annotations

import torch

from bridge.at.array_api.running import agreed, axes_of, named, on_memory

TYPE_CHECKING = False
if TYPE_CHECKING:  # the names of this module are public
    from collections.abc import Callable, Sequence
    from typing import Any

    from bridge.at.tensor import Tensor

MAIN = ("matmul", "matrix_transpose", "tensordot", "vecdot")

# The functions of one argument, which torch has likewise, and what they return.
_OF_MATRICES = {
    "det": "the determinants of matrices",
    "eig": "the eigenvalues and eigenvectors of matrices, complex",
    "eigh": "the eigenvalues and eigenvectors of Hermitian matrices",
    "eigvals": "the eigenvalues of matrices, complex",
    "eigvalsh": "the eigenvalues of Hermitian matrices",
    "inv": "the inverses of matrices",
    "slogdet": "the signs and the logarithms of the absolute values of determinants",
    "svdvals": "the singular values of matrices",
}

__all__ = [
    *_OF_MATRICES, *MAIN, "cholesky", "cross", "diagonal", "matrix_norm", "matrix_power",
    "matrix_rank", "outer", "pinv", "qr", "solve", "svd", "trace", "vector_norm",
]  # fmt: skip


def _of_matrices(name: str, what: str) -> Callable[..., Any]:
    run = getattr(torch.linalg, name)

    def function(x: torch.Tensor, /) -> Any:
        return run(x)

    return named(function, name, f"Return {what}.")


for _name, _what in _OF_MATRICES.items():
    globals()[_name] = _of_matrices(_name, _what)


@on_memory
def cholesky(x: torch.Tensor, /, *, upper: bool = False) -> Any:
    """Return the triangular factors of positive-definite matrices."""
    return torch.linalg.cholesky(x, upper=upper)


@on_memory
def cross(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> Any:
    """Return the cross products of vectors of three elements along `axis`.

    Raises ValueError: they have another number of elements.
    """
    x1, x2 = agreed(x1, x2)
    for x in (x1, x2):
        axes_of(x, axis)
        if x.shape[axis] != 3:
            raise ValueError(f"A cross product takes 3 elements, not {x.shape[axis]}.")
    x1, x2 = torch.broadcast_tensors(x1, x2)  # type: ignore[no-untyped-call]
    return torch.linalg.cross(x1, x2, dim=axis)


@on_memory
def diagonal(x: torch.Tensor, /, *, offset: int = 0) -> Any:
    """Return views of the diagonals of matrices, `offset` above the main one."""
    return torch.diagonal(x, offset, -2, -1)


@on_memory
def matrix_norm(x: torch.Tensor, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return the norms of matrices."""
    return torch.linalg.matrix_norm(x, ord=ord, keepdim=keepdims)


@on_memory
def matrix_power(x: torch.Tensor, n: int, /) -> Any:
    """Return the matrices to the power `n`."""
    return torch.linalg.matrix_power(x, n)


def _tolerance(x: torch.Tensor, rtol: Any) -> Any:
    return rtol.to(x.real.dtype) if isinstance(rtol, torch.Tensor) else rtol


@on_memory
def matrix_rank(x: torch.Tensor, /, *, rtol: Any = None) -> Any:
    """Return the ranks of matrices: of singular values above `rtol` times the greatest.

    Raises ValueError: fewer than two dimensions.
    """
    if x.ndim < 2:
        raise ValueError(f"A matrix has two dimensions; the array has {x.ndim}.")
    return torch.linalg.matrix_rank(x, rtol=_tolerance(x, rtol))


@on_memory
def outer(x1: torch.Tensor, x2: torch.Tensor, /) -> Any:
    """Return the products of each pair of elements of two vectors."""
    return torch.outer(*agreed(x1, x2))


@on_memory
def pinv(x: torch.Tensor, /, *, rtol: Any = None) -> Any:
    """Return the pseudo-inverses of matrices."""
    return torch.linalg.pinv(x, rtol=_tolerance(x, rtol))


@on_memory
def qr(x: torch.Tensor, /, *, mode: str = "reduced") -> Any:
    """Return the factors ``Q`` and ``R`` of matrices; `mode` is "reduced" or "complete"."""
    return torch.linalg.qr(x, mode=mode)


@on_memory
def solve(x1: torch.Tensor, x2: torch.Tensor, /) -> Any:
    """Return the solutions of ``x1 @ x = x2``: `x2` is a vector, or a stack of matrices."""
    x1, x2 = agreed(x1, x2)
    if x2.ndim > 1 and x1.shape[:-1] == x2.shape:
        # matrices, which torch would take for a stack of vectors
        x2 = x2.unsqueeze(0)
    return torch.linalg.solve(x1, x2)


@on_memory
def svd(x: torch.Tensor, /, *, full_matrices: bool = True) -> Any:
    """Return the singular value decompositions of matrices: ``U``, ``S`` and ``Vh``."""
    return torch.linalg.svd(x, full_matrices=full_matrices)


@on_memory
def trace(x: torch.Tensor, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices; integers are summed as int64."""
    return torch.sum(torch.diagonal(x, offset, -2, -1), -1, dtype=dtype)


@on_memory
def vector_norm(
    x: torch.Tensor,
    /,
    *,
    axis: int | tuple[int, ...] | None = None,
    keepdims: bool = False,
    ord: Any = 2,
) -> Any:
    """Return the norms of vectors along `axis`; None takes all elements as one vector."""
    if axis == ():
        size = torch.abs(x)
        return (x != 0).to(size.dtype) if ord == 0 else size
    return torch.linalg.vector_norm(x, ord=ord, dim=axis, keepdim=keepdims)


@on_memory
def matmul(x1: torch.Tensor, x2: torch.Tensor, /) -> torch.Tensor:
    """Return the products of matrices, or of a matrix and a vector."""
    return torch.matmul(*agreed(x1, x2))


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Return a view with the last two dimensions swapped. Raises ValueError: there are fewer."""
    if x.ndim < 2:
        raise ValueError(f"A matrix has two dimensions; the array has {x.ndim}.")
    return x.transpose(-1, -2)


@on_memory
def tensordot(
    x1: torch.Tensor, x2: torch.Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Any:
    """Return the sums of products along `axes` of both: the last and first, or pairs of lists."""
    x1, x2 = agreed(x1, x2)
    if isinstance(axes, int):
        return torch.tensordot(x1, x2, dims=axes)
    first, second = axes
    return torch.tensordot(
        x1, x2, dims=(list(axes_of(x1, tuple(first))), list(axes_of(x2, tuple(second))))
    )


@on_memory
def vecdot(x1: torch.Tensor, x2: torch.Tensor, /, *, axis: int = -1) -> torch.Tensor:
    """Return the dot products of vectors along `axis`, the first of them conjugated.

    Raises ValueError: the vectors have other sizes.
    """
    x1, x2 = agreed(x1, x2)
    for x in (x1, x2):
        axes_of(x, axis)
    if x1.shape[axis] != x2.shape[axis]:
        raise ValueError(f"The vectors have {x1.shape[axis]} and {x2.shape[axis]} elements.")
    x1, x2 = torch.movedim(x1, axis, -1), torch.movedim(x2, axis, -1)
    return torch.sum(torch.conj_physical(x1) * x2, -1, dtype=x1.dtype)
