# SPDX-License-Identifier: Apache-2.0
"""An estimate of the nanoseconds that an operator takes, by its type and the sizes of its blobs.

It tells microseconds from milliseconds, on a core that makes some 50 billion multiplications and
additions a second. No clock takes part: the same net runs in the same way.
"""

from __future__ import annotations

from math import sqrt

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.blobs.blob import Blob
    from bridge.caffe2.execution.definition import Definition
    from bridge.caffe2.execution.operator import Operator

_CALL = 1000.0
_ELEMENT = 0.06
_PRODUCT = 0.02
# Parts of the types of operators that multiply their first two inputs; and of those that use some
# rows of the first input.
_PRODUCTS = ("FC", "MatMul", "Conv")
_BY_ROWS = ("Gather", "Scatter", "Sparse")


def _numel_of(blob: Blob) -> int:
    """Return the number of elements of a blob; 0: it has no tensor."""
    tensor = blob._tensor
    return 0 if tensor is None or not tensor.defined() else tensor.numel()


def work_of(operator: Operator, definition: Definition) -> float:
    """Return the estimate for an operator on its blobs as they are; on a GPU, for the launch."""
    if definition.kind != "cpu":
        return _CALL
    op_type, inputs = definition.type, operator.Inputs()
    read = [_numel_of(blob) for blob in inputs]
    written = [_numel_of(blob) for blob in operator.Outputs()]
    elements = sum(read) + sum(written)
    if len(read) < 2 or not written:
        return _CALL + _ELEMENT * elements
    if any(part in op_type for part in _BY_ROWS):
        elements = sum(n for n in (*read, *written) if n != read[0])
        if "Lengths" in op_type:  # which sum the rows that input 1 has the indices of
            elements += read[1] * (read[0] // _rows_of(inputs[0]))
    products = 0.0
    if any(part in op_type for part in _PRODUCTS):
        # m × k elements and k × n give m × n.
        is_gradient = "Gradient" in op_type and len(read) > 2
        third = read[2] if is_gradient else written[0]
        products = sqrt(read[0]) * sqrt(read[1]) * sqrt(third) * (2 if is_gradient else 1)
        if op_type == "BatchMatMul":
            products /= sqrt(_rows_of(inputs[0]))
    return _CALL + _ELEMENT * elements + _PRODUCT * products


def _rows_of(blob: Blob) -> int:
    tensor = blob._tensor
    return max(tensor.size(0), 1) if tensor is not None and tensor.dim() else 1
