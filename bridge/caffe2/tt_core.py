# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.tt_core``: weights of layers as products of small cores.

A tensor-train layer (the operator TT) stores a weight of (prod(out_sizes), prod(inp_sizes)) as
cores, of which core i has ``tt_ranks[i] * inp_sizes[i] * out_sizes[i] * tt_ranks[i + 1]`` elements.
See Oseledets, "Tensor-Train Decomposition", 2011, and Novikov et al., "Tensorizing Neural
Networks", 2015. Follows caffe2/python/tt_core.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import tt_core
>>> weight = np.arange(24, dtype=np.float32).reshape(4, 6)
>>> tt_core.matrix_to_tt(weight, inp_sizes=[2, 2], out_sizes=[2, 3], tt_ranks=[1, 4, 1]).shape
(40,)
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError

__all__ = ["fc_net_to_tt_net", "init_tt_cores", "matrix_to_tt", "tt_svd"]


def init_tt_cores(
    inp_sizes: Sequence[int], out_sizes: Sequence[int], tt_ranks: Sequence[int], seed: int = 1234
) -> Any:
    """Return random cores for a layer that is trained from scratch: a float32 array of (n,).

    All cores but the last have orthonormal columns. The numbers come from NumPy's global generator,
    which is seeded with `seed`. Raises EnforceNotMet, also an AssertionError: the numbers of sizes
    and ranks do not fit each other.
    """
    _check_lengths(inp_sizes, out_sizes, tt_ranks, "init_tt_cores")
    np.random.seed(seed)
    cores = []
    rest: Any = 1
    for position, (size_in, size_out) in enumerate(zip(inp_sizes, out_sizes, strict=False)):
        rank, next_rank = tt_ranks[position : position + 2]
        core = np.random.normal(0, 1, size=(rank, size_in * size_out * next_rank))
        core = np.dot(rest, core).reshape(-1, next_rank)
        if position < len(inp_sizes) - 1:
            core, rest = np.linalg.qr(core)
        cores.append(core.ravel())
    scale = float(math.prod(inp_sizes) * math.prod(tt_ranks)) ** (1.0 / len(inp_sizes))
    # In this order: the scale is a Python float, so the product is rounded once, to float32.
    return (0.1 / scale) * np.concatenate(cores).astype(np.float32)


def matrix_to_tt(
    W: Any, inp_sizes: Sequence[int], out_sizes: Sequence[int], tt_ranks: Sequence[int]
) -> Any:
    """Return the cores that approximate a matrix, the last one first: a float32 array of (n,).

    W: an array of (prod(inp_sizes), prod(out_sizes)), a fully connected layer's weight transposed.
    The approximation is exact if the ranks are large enough. Raises EnforceNotMet, also an
    AssertionError: the sizes, the ranks and the shape of `W` do not fit each other.
    """
    _check_lengths(inp_sizes, out_sizes, tt_ranks, "matrix_to_tt")
    for number, sizes, place in (
        (W.shape[0], inp_sizes, "first"),
        (W.shape[1], out_sizes, "second"),
    ):
        if number != math.prod(sizes):
            raise EnforceAssertionError(
                f"The product of the sizes {list(sizes)} must be the {place} dimension of W, "
                f"{number}.",
                "matrix_to_tt",
            )
    count = len(inp_sizes)
    pairs = [axis for position in range(count) for axis in (position, count + position)]
    products = np.array(inp_sizes) * np.array(out_sizes)
    tensor = W.T.reshape(*inp_sizes, *out_sizes).transpose(pairs).reshape(products)
    found = tt_svd(tensor, products, np.array(tt_ranks))
    cores, start = [], 0
    for position, (size_in, size_out) in enumerate(zip(inp_sizes, out_sizes, strict=False)):
        shape = tt_ranks[position], size_in, size_out, tt_ranks[position + 1]
        core = found[start : start + math.prod(shape)].reshape(shape)
        # The operator reads (input, next rank, rank, output), from the last core to the first.
        cores.append(core.transpose(1, 3, 0, 2).ravel())
        start += core.size
    return np.concatenate(cores[::-1])


def tt_svd(W: Any, sizes: Any, tt_ranks: Any) -> Any:
    """Return the cores of a tensor, by singular value decompositions: a float32 array of (n,).

    W: an array of shape `sizes`. Raises EnforceNotMet, also an AssertionError: there is not one
    rank more than there are sizes, or a rank is larger than the tensor's.
    """
    if len(tt_ranks) != len(sizes) + 1:
        raise EnforceAssertionError(
            f"There are {len(sizes)} sizes, so {len(sizes) + 1} ranks, not {len(tt_ranks)}.",
            "tt_svd",
        )
    cores, rest = [], np.array(W)
    for rank, size, next_rank in zip(tt_ranks, sizes, tt_ranks[1:-1], strict=False):
        u, s, v = np.linalg.svd(rest.reshape(rank * size, -1), full_matrices=False)
        if len(s) < next_rank:
            raise EnforceAssertionError(
                f"The rank {next_rank} is too large: at this place it is at most {len(s)}.",
                "tt_svd",
            )
        cores.append(u[:, :next_rank].ravel())
        rest = np.dot(np.diag(s[:next_rank]), v[:next_rank])
    return np.concatenate([*cores, rest.ravel()]).astype(np.float32)


def fc_net_to_tt_net(net: Any) -> None:
    """Do nothing; Caffe2 has this name for a conversion that was never written."""


def _check_lengths(
    inp_sizes: Sequence[int], out_sizes: Sequence[int], tt_ranks: Sequence[int], caller: str
) -> None:
    if len(inp_sizes) != len(out_sizes):
        raise EnforceAssertionError(
            f"The number of input dimensions ({len(inp_sizes)}) must be equal to the number of "
            f"output dimensions ({len(out_sizes)}).",
            caller,
        )
    if len(tt_ranks) != len(inp_sizes) + 1:
        raise EnforceAssertionError(
            f"The number of tt-ranks ({len(tt_ranks)}) must be one more than the number of input "
            f"and output dimensions ({len(out_sizes)}).",
            caller,
        )
