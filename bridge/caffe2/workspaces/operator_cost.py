# SPDX-License-Identifier: Apache-2.0
"""The arithmetic operations of an operator, and the bytes that it writes.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> for name, sizes in {"x": (2, 5), "w": (4, 5), "b": (4,)}.items():
...     _ = workspace.FeedBlob(name, np.zeros(sizes, np.float32))
>>> workspace.GetOperatorCost(core.CreateOperator("FC", ["x", "w", "b"], "y"), ["x", "w", "b"])
(88, 32)
>>> workspace.ResetWorkspace()
True

Follows the functions CostInferenceFor... of PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from bridge import c10
from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.names import name_of
from bridge.caffe2.execution.blob_table import find_blob
from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.definition import Definition, definition_of
from bridge.caffe2.workspaces.current import current

_FLOAT_BYTES = 4


def GetOperatorCost(operator: Any, blobs: Iterable[Any]) -> tuple[int, int]:
    """Return the number of arithmetic operations of an operator, and of the bytes that it writes.

    blobs: the names of its inputs, in the current workspace; only their sizes matter. Known are
    Conv, Conv1D to Conv3D, and FC. Raises EnforceNotMet: another type, or a blob without a tensor.
    """
    caller = "GetOperatorCost"
    definition = definition_of(operator, caller)
    count = _COUNTS.get(definition.type)
    if count is None:
        raise EnforceNotMet(
            f"Cost inference function not defined for {definition.type}; it is for "
            f"{', '.join(_COUNTS)}.",
            caller,
        )
    return count(definition, [_tensor(one, caller) for one in blobs])


def _tensor(name: Any, caller: str) -> Any:
    """Return a tensor of torch's on no memory, of the sizes of a blob."""
    import torch

    blob = find_blob(current.workspace, name_of(name, caller))
    if blob is None or not blob.IsType(c10.tensor):
        raise EnforceNotMet(f"There is no blob {name!r} with a tensor.", caller)
    return torch.empty(list(blob.Get(c10.tensor).sizes()), device="meta")


def _convolution(definition: Definition, inputs: list[Any]) -> tuple[int, int]:
    from bridge.caffe2.operators.base.windows import Windows

    arguments = Arguments(definition)
    windows = Windows(arguments)
    x, w = (windows.order.first(one) for one in inputs[:2])
    window = windows.on(x.shape[2:])
    written = x.shape[0] * prod(window.sizes) * w.shape[0]
    return 2 * written * prod(window.kernel) * w.shape[1], written * _FLOAT_BYTES


def _fully_connected(definition: Definition, inputs: list[Any]) -> tuple[int, int]:
    arguments = Arguments(definition)
    x, w = inputs[:2]
    rows = prod(x.shape[: arguments.single("axis", 1)])
    units = prod(w.shape[: arguments.single("axis_w", 1)])
    written = rows * units
    return written * (2 * (x.numel() // max(rows, 1)) + 1), written * _FLOAT_BYTES


_COUNTS = {
    **dict.fromkeys(("Conv", "Conv1D", "Conv2D", "Conv3D"), _convolution),
    "FC": _fully_connected,
}
