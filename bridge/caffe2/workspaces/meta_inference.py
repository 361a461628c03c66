# SPDX-License-Identifier: Apache-2.0
"""Sizes and types of the outputs of operators that are functions, on torch's meta device.

The function runs on tensors that have sizes and no memory. Inputs whose values are known are given
as they are where that is needed, such as the new sizes of a Reshape.
"""

from __future__ import annotations

import math

from bridge.annotation import Any
from bridge.c10 import TypeMeta, string
from bridge.caffe2.base.data_types import NUMBERS
from bridge.caffe2.execution.function_operator import FunctionOperator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    import numpy as np

    from bridge.caffe2.execution.definition import Definition

    # Sizes, type, and the values where they are known and few.
    Known = tuple[list[int], TypeMeta, np.ndarray[Any, Any] | None]


def infer_on_meta(definition: Definition, known: dict[str, Known]) -> dict[str, Known] | None:
    """Return the outputs of an operator by name, without values; None if they cannot be inferred.

    `known`: the inputs by name. Nothing is allocated.
    """
    cls = definition.cls
    if not issubclass(cls, FunctionOperator):
        return None
    bound = definition.checked
    inputs = [known[name] for name in definition.inputs]
    if any(meta.torch is None for _, meta, _ in inputs) or not _types_fit(bound.types, inputs):
        return None
    import torch

    arguments = dict(bound.arguments)
    if "TargetDevice" in bound.wants:
        arguments[bound.wants["TargetDevice"]] = torch.device("meta")
    for given in _tries(inputs):
        try:
            returned = bound.function(*given, **arguments)
        except Exception:  # noqa: BLE001  # it reads values, or refuses the sizes
            continue
        return _described(definition, returned)
    return None


def _types_fit(types: tuple[Any, ...], inputs: list[Known]) -> bool:
    for i, allowed in enumerate(types):
        if isinstance(allowed, int):
            allowed = (inputs[allowed][1],)
        if allowed is not None and inputs[i][1] not in allowed:
            return False
    return True


def _tries(inputs: list[Known]) -> Iterator[list[Any]]:
    """Yield tensors for the inputs: on the meta device, and with the known ones as they are."""
    import torch

    on_meta = [torch.empty(sizes, dtype=meta.torch, device="meta") for sizes, meta, _ in inputs]
    yield on_meta
    if any(values is not None for _, _, values in inputs):
        yield [
            empty if values is None else torch.from_numpy(values.copy())
            for empty, (_, _, values) in zip(on_meta, inputs, strict=True)
        ]


def _described(definition: Definition, returned: Any) -> dict[str, Known] | None:
    found: dict[str, Known] = {}
    results = returned if isinstance(returned, (tuple, list)) else (returned,)
    for name, result in zip(definition.outputs, results, strict=False):
        if result is None:
            continue
        # Strings are returned as an array.
        meta = string if str(result.dtype) == "object" else TypeMeta.Make(result.dtype)
        if meta.name not in NUMBERS:
            return None
        found[name] = ([int(size) for size in result.shape], meta, None)
    return found


def total_elements(known: dict[str, Known], names: Any) -> int:
    """Return the number of elements of blobs together."""
    return sum(math.prod(known[name][0]) for name in set(names) if name in known)
