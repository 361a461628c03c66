# SPDX-License-Identifier: Apache-2.0
"""MindSpore, whose tensors are exported by to_dlpack(), except for booleans and complex numbers."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    import mindspore

    if getattr(x, "has_init", False):  # its to_dlpack() would end the process
        raise BufferError("The MindSpore tensor is not initialised. Call x.init_data() first.")
    by_numpy = (mindspore.bool_, mindspore.complex64, mindspore.complex128)
    return x.asnumpy() if x.dtype in by_numpy else x


def _export(tensor: Any) -> Any:
    import mindspore

    tensor = fit(tensor, writable=True, row_major=True)
    if tensor.dtype().name == "bool":
        return mindspore.Tensor.from_numpy(tensor.numpy())
    return mindspore.Tensor.from_dlpack(tensor.__dlpack__())


register("mindspore", types=("mindspore.Tensor",), importer=_import, exporter=_export)
