# SPDX-License-Identifier: Apache-2.0
"""OpenVINO, whose tensors give a NumPy array of their memory, but of another type for some."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit
from bridge.exchange.registry import register

# Types that NumPy lacks: OpenVINO's name -> the bridge's, and the reverse.
_TYPES = {
    "bf16": "bfloat16",
    "f8e4m3": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f8e8m0": "float8_e8m0fnu",
}
_NAMES = {name: kind for kind, name in _TYPES.items()}


def _import(x: Any) -> Any:
    kind = x.element_type.get_type_name()
    if kind == "string":
        raise BufferError("The tensor's elements are strings. Use x.str_data, which copies them.")
    if x.element_type.bitwidth < 8 and kind != "boolean":
        raise BufferError(
            f"OpenVINO packs elements of {kind} into bytes. Use x.data, which has the bytes."
        )
    if kind in _TYPES:
        import ml_dtypes

        return x.data.view(getattr(ml_dtypes, _TYPES[kind]))
    return x.data


def _export(tensor: Any) -> Any:
    import openvino

    tensor = fit(tensor, writable=True, row_major=True)
    array, kind = tensor.numpy(), _NAMES.get(tensor.dtype().name)
    if kind is None:
        return openvino.Tensor(array, shared_memory=True)
    as_bytes = array.reshape(-1).view("uint8")
    return openvino.Tensor(
        as_bytes, openvino.Shape(list(array.shape)), getattr(openvino.Type, kind)
    )


register("openvino", types=("openvino.Tensor",), importer=_import, exporter=_export)
