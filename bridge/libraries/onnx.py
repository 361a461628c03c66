# SPDX-License-Identifier: Apache-2.0
"""ONNX, whose TensorProtos are messages: their values are copied."""

from __future__ import annotations

from typing import Any

from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    from onnx import TensorProto, numpy_helper

    if x.data_type == TensorProto.STRING:
        raise BufferError(
            "The TensorProto has strings. Use bridge.asarray(list(x.string_data)), which copies "
            "them."
        )
    if x.data_type == TensorProto.UNDEFINED:
        raise BufferError("The TensorProto has no element type (data_type is UNDEFINED).")
    return numpy_helper.to_array(x)


register("onnx", types=("onnx.TensorProto",), importer=_import)
