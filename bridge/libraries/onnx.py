# SPDX-License-Identifier: Apache-2.0
"""ONNX, whose TensorProtos are messages: their values are copied."""

from __future__ import annotations

from typing import Any

from bridge.exchange.registry import register


def _import(x: Any) -> Any:
    from onnx import numpy_helper

    return numpy_helper.to_array(x)


register("onnx", types=("onnx.TensorProto",), importer=_import)
