# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime, whose OrtValues hold row-major tensors, and whose DLPack has booleans as uint8."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit, refuse_types
from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    kind = x.data_type()
    if kind == "tensor(bool)" and x.device_name().lower() == "cpu":
        return x.numpy()
    if not kind.startswith("tensor(") or kind == "tensor(string)":
        raise BufferError(
            f"An OrtValue of {kind} is not one block of memory. Use its numpy(), or its items."
        )
    return x.__dlpack__(stream=None)


def _export(tensor: Any) -> Any:
    import onnxruntime

    refuse_types(tensor, "ONNX Runtime", "complex64", "complex128")
    return onnxruntime.OrtValue.from_dlpack(fit(tensor, writable=True, row_major=True))


register(
    "onnxruntime",
    types=("onnxruntime.OrtValue", "onnxruntime.capi.onnxruntime_pybind11_state.OrtValue"),
    importer=_import,
    exporter=_export,
)
