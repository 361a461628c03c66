# SPDX-License-Identifier: Apache-2.0
"""CuPy, whose arrays are in CUDA memory, have any strides and are always writable.

In: CuPy's arrays have ``__dlpack__``, which the general ways read.
"""

from __future__ import annotations

from typing import Any

import cupy

from bridge.at.tensor import Tensor
from bridge.c10.copy import reported_copy
from bridge.c10.device import Device
from bridge.c10.reports import ASKED, report_copy
from bridge.exchange.ingest import ingest
from bridge.exchange.transfer import to_device

__all__ = ["give"]


def give(x: Any, copy: bool | None) -> Any:
    """A ``cupy.ndarray`` of the memory of `x`; see bridge.to_cupy."""
    if isinstance(x, cupy.ndarray):
        if copy is not True:
            return x
        report_copy(x.nbytes, ASKED)
        return x.copy()
    here = Tensor._wrap(ingest(x, None, False if copy is False else None))
    if here.device().type.name not in ("CUDA", "CUDAManaged"):
        tensor = Tensor._wrap(to_device(here.unsafeGetTensorImpl(), Device("cuda"), copy))
    elif copy is True:
        tensor = Tensor._wrap(reported_copy(here.unsafeGetTensorImpl(), ASKED, "to_cupy"))
    elif here.readonly:
        if copy is False:
            raise BufferError(
                "The memory is read-only, which a CuPy array cannot be. Allow a copy with "
                "copy=None."
            )
        reason = "the memory is read-only, which a CuPy array cannot be"
        tensor = Tensor._wrap(reported_copy(here.unsafeGetTensorImpl(), reason, "to_cupy"))
    else:
        tensor = here
    try:
        return cupy.from_dlpack(tensor)
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise BufferError(f"CuPy does not take a tensor of {tensor.dtype()}: {error}") from error
