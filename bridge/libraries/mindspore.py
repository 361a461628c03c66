# SPDX-License-Identifier: Apache-2.0
"""MindSpore, whose tensors are exported by to_dlpack(), except for booleans."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    import mindspore

    return x.asnumpy() if x.dtype == mindspore.bool_ else x


def _export(tensor: Any) -> Any:
    import mindspore

    tensor = fit(tensor, writable=True, row_major=True)
    if tensor.dtype().name == "bool":
        return mindspore.Tensor.from_numpy(tensor.numpy())
    return mindspore.Tensor.from_dlpack(tensor.__dlpack__())


register("mindspore", types=("mindspore.Tensor",), importer=_import, exporter=_export)
