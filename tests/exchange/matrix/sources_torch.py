# SPDX-License-Identifier: Apache-2.0
"""torch tensors."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import torch

from tests.exchange.matrix.case import Case, samples
from tests.exchange.matrix.sources_numpy import CUBE, EVERY_TYPE, FLOATS
from tests.helpers.element_types import MOST_AXES


def address(source: Any) -> int:
    return int(source.data_ptr())


def of_tensor(name: str, make: Any, values: Any, **fields: Any) -> Case:
    fields.setdefault("address", address)
    return Case(f"torch {name}", make, values=lambda: values, library="torch", **fields)


def typed(name: str) -> torch.Tensor:
    """A tensor of the type, by its bytes."""
    values = samples(name)
    raw = torch.from_numpy(values.view(np.uint8).reshape(-1).copy())
    tensor: torch.Tensor = raw.clone().view(getattr(torch, name)).reshape(values.shape)
    return tensor


IN_TORCH = [name for name in EVERY_TYPE if isinstance(getattr(torch, name, None), torch.dtype)]
IN_TORCH = [name for name in IN_TORCH if not name.startswith(("int2", "int4", "uint2", "uint4"))]


def strided(name: str, view: np.ndarray[Any, Any]) -> Case:
    tensor = torch.from_numpy(view)
    return of_tensor(name, lambda: tensor, view.copy(), strides=tensor.stride())


COMPLEX = np.complex64([[1 + 2j, 3 - 4j], [0, -1j]])


class Marked(torch.Tensor):
    """A subclass without any meaning of its own."""


class Answering(torch.Tensor):
    """A subclass whose operations are its own."""

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return super().__torch_function__(func, types, args, kwargs or {})


def inference() -> torch.Tensor:
    with torch.inference_mode():
        return torch.from_numpy(FLOATS.copy()).clone()


SHARED = [
    *(of_tensor(name, lambda name=name: typed(name), samples(name)) for name in IN_TORCH),
    of_tensor("0-d", lambda: torch.tensor(3.0), np.float32(3)),
    of_tensor("empty", lambda: torch.zeros(0), np.zeros(0, np.float32)),
    of_tensor("empty of three dimensions", lambda: torch.zeros(2, 0, 3), np.zeros((2, 0, 3), "f4")),
    of_tensor(
        "most dimensions",
        lambda: torch.ones((1,) * MOST_AXES),
        np.ones((1,) * MOST_AXES, np.float32),
    ),
    strided("transposed", CUBE.T),
    strided("column", CUBE[:, :, 1]),
    strided("every other", CUBE[:, ::2]),
    of_tensor(
        "expanded",
        lambda: torch.arange(3.0).expand(2, 3),
        np.float32([[0, 1, 2], [0, 1, 2]]),
        strides=(0, 1),
    ),
    of_tensor(
        "overlapping",
        lambda: torch.arange(4.0).as_strided((2, 2), (1, 1)),
        np.float32([[0, 1], [1, 2]]),
        strides=(1, 1),
    ),
    of_tensor("view with an offset", lambda: torch.arange(6.0)[2:], np.float32([2, 3, 4, 5])),
    of_tensor("detached", lambda: torch.ones(2, requires_grad=True).detach(), np.ones(2, "f4")),
    of_tensor(
        "frozen parameter", lambda: torch.nn.Parameter(torch.ones(2), False), np.ones(2, "f4")
    ),
    of_tensor("subclass", lambda: torch.from_numpy(FLOATS.copy()).as_subclass(Marked), FLOATS),
    of_tensor("answering", lambda: torch.from_numpy(FLOATS.copy()).as_subclass(Answering), FLOATS),
    of_tensor("of inference mode", inference, FLOATS),
    of_tensor(
        "channels last",
        lambda: torch.zeros(2, 3, 4, 5).to(memory_format=torch.channels_last),
        np.zeros((2, 3, 4, 5), "f4"),
        strides=(60, 1, 15, 3),
    ),
]

LAZY = [
    of_tensor(
        "conjugate", lambda: torch.from_numpy(COMPLEX.copy()).conj(), COMPLEX.conj(), address=None
    ),
    of_tensor(
        "negative",
        lambda: torch.from_numpy(COMPLEX.copy()).conj().imag,
        np.ascontiguousarray(COMPLEX.conj().imag),
        address=None,
    ),
    of_tensor(
        "adjoint",
        lambda: torch.from_numpy(COMPLEX.copy()).mH,
        COMPLEX.conj().T.copy(),
        address=None,
        strides=(1, 2),
    ),
    of_tensor(
        "twice conjugate",
        lambda: torch.from_numpy(COMPLEX.copy()).conj().conj(),
        COMPLEX,
    ),
    of_tensor(
        "real part",
        lambda: torch.from_numpy(COMPLEX.copy()).real,
        np.ascontiguousarray(COMPLEX.real),
        strides=(4, 2),
    ),
    of_tensor(
        "resolved", lambda: torch.from_numpy(COMPLEX.copy()).conj().resolve_conj(), COMPLEX.conj()
    ),
]


def refused(name: str, make: Any, match: str = "") -> Case:
    return Case(f"torch {name}", make, library="torch", match=match)


REFUSED = [
    refused("requiring grad", lambda: torch.ones(2, requires_grad=True), r"detach\(\)"),
    refused("parameter", lambda: torch.nn.Parameter(torch.ones(2)), r"detach\(\)"),
    refused("result with grad", lambda: torch.ones(2, requires_grad=True) * 2, r"detach\(\)"),
    refused("sparse", lambda: torch.eye(3).to_sparse(), "to_dense"),
    refused("meta", lambda: torch.ones(3, device="meta"), "meta"),
    refused("mkldnn", lambda: torch.ones(3, 3).to_mkldnn(), "to_dense"),
    refused("uninitialised parameter", torch.nn.UninitializedParameter, "uninitialised"),
    refused("uninitialised buffer", torch.nn.UninitializedBuffer, "uninitialised"),
]

if hasattr(torch, "complex32") and hasattr(ml_dtypes, "complex32"):
    SHARED.append(of_tensor("complex32", lambda: typed("complex32"), samples("complex32")))

CASES = [*SHARED, *LAZY, *REFUSED]
