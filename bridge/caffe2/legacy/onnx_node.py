# SPDX-License-Identifier: Apache-2.0
"""Node: a node of ONNX while it becomes operators of Caffe2, with the parts that most share.

Follows caffe2/onnx/backend.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.names import DummyName
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.definitions.operator_types import RegisteredOperators
from bridge.caffe2.legacy.onnx_models import FOLDED, attributes_of

CALLER = "Caffe2Backend.convert_node"
_INSTEAD = "run the model with onnxruntime or onnx.reference"
# Types of elements of ONNX and their numbers in Caffe2.
CAFFE2_TYPES = {1: 1, 2: 6, 3: 7, 4: 8, 5: 9, 6: 2, 7: 10, 8: 4, 9: 5, 10: 12, 11: 13}
RENAMED = {
    "BatchNormalization": "SpatialBN",
    "Equal": "EQ",
    "GlobalAveragePool": "AveragePool",
    "GlobalMaxPool": "MaxPool",
    "Greater": "GT",
    "Identity": "Copy",
    "InstanceNormalization": "InstanceNorm",
    "Less": "LT",
    "MatMul": "BatchMatMul",
    "Neg": "Negative",
    "Pad": "PadImage",
    "Tile": "NumpyTile",
    "Unsqueeze": "ExpandDims",
}
_ATTRIBUTES = {
    "ConvTranspose": {"output_padding": "adjs"},
    "Selu": {"gamma": "scale"},
    "Squeeze": {"axes": "dims"},
    "Transpose": {"perm": "axes"},
    "Unsqueeze": {"axes": "dims"},
}
# Attributes with the one value that Caffe2's operators can do, which is left out.
_FIXED: dict[str, Any] = {
    "allowzero": 0,
    "noop_with_empty_axes": 0,
    "largest": 1,
    "sorted": 1,
    "select_last_index": 0,
    "spatial": 1,
    "storage_order": 0,
    "training_mode": 0,
    "saturate": 1,
}


class Node:
    """A node of ONNX, and the operators that have been made of it."""

    def __init__(self, node: Any, infos: Sequence[Any], opset: int, names: DummyName) -> None:
        self.kind, self.name, self.opset = str(node.op_type), str(node.name), opset
        self.inputs, self.outputs = list(node.input), list(node.output)
        self.attributes = attributes_of(node)
        self.shapes = {
            one.name: [dim.dim_value for dim in one.type.tensor_type.shape.dim]
            for one in infos
            if one.type.tensor_type.HasField("shape")
        }
        self.fresh = names.new_dummy_name
        self.operators: list[Any] = []
        self._check()

    def _check(self) -> None:
        """Refuse attributes that ONNX does not know, and values that Caffe2 cannot do."""
        self.attributes.pop("consumed_inputs", None)
        for name, only in _FIXED.items():
            value = self.attributes.pop(name, only)
            if value != only:
                self.refuse(f"{name}={value}")
        known = _known_attributes().get(self.kind)
        if known is None:  # an operator of Caffe2
            return
        known = known | {*FOLDED.get(self.kind, ()), "is_test"}
        for name in self.attributes:
            if name not in known:
                raise EnforceNotMet(
                    f"Don't know how to map unexpected argument {name} (from operator "
                    f"{self.kind}).",
                    CALLER,
                )

    def refuse(self, what: str) -> None:
        """Raise EnforceNotMet: Caffe2's operator has not got something."""
        raise EnforceNotMet(
            f"Caffe2's operator for {self.kind} of ONNX (outputs {self.outputs}, opset "
            f"{self.opset}) has no {what}: {_INSTEAD}.",
            CALLER,
        )

    def take(self, name: str, default: Any = None) -> Any:
        """Return an attribute, and leave it out of those that `plain` hands on."""
        return self.attributes.pop(name, default)

    def add(self, kind: str, inputs: Sequence[str], outputs: Sequence[str], **args: Any) -> None:
        """Add an operator."""
        made = CreateOperator(kind, list(inputs), list(outputs), name=self.name, **args)
        self.operators.append(made)

    def rank(self) -> int:
        """Return the number of dimensions of the first input; refuse if it is not known."""
        if self.inputs[0] not in self.shapes:
            self.refuse("negative axes where the number of dimensions is not known")
        return len(self.shapes[self.inputs[0]])

    def positive(self, axis: int, added: int = 0) -> int:
        """Return an axis that is not negative."""
        return axis if axis >= 0 else axis + self.rank() + added


@cache
def _known_attributes() -> dict[str, set[str]]:
    """Return the names of the attributes of ONNX's operators, of all versions."""
    from onnx import defs

    found: dict[str, set[str]] = {}
    for schema in defs.get_all_schemas_with_history():
        found.setdefault(schema.name, set()).update(schema.attributes)
    return found


def plain(node: Node) -> None:
    """Add the operator that differs in names alone, if at all."""
    kind = RENAMED.get(node.kind, node.kind)
    if kind not in RegisteredOperators():
        raise EnforceNotMet(f"Don't know how to translate op {node.kind}: {_INSTEAD}.", CALLER)
    renamed = {"kernel_shape": "kernels", **_ATTRIBUTES.get(node.kind, {})}
    args = {renamed.get(name, name): value for name, value in node.attributes.items()}
    node.add(kind, node.inputs, node.outputs, **args)


def filling(tensor: Any, name: str | None = None) -> Any:
    """Return the OperatorDef that makes a tensor, a TensorProto of ONNX, in the blob `name`.

    name: by default the tensor's.

    Raises EnforceNotMet: Caffe2 has no operator for its type.
    """
    from onnx import numpy_helper

    kinds = {1: "", 6: "Int", 7: "Int64", 8: "String", 9: "Bool", 11: "Double", 12: "Int64"}
    kinds |= dict.fromkeys((2, 3, 4, 5), "Int")
    if tensor.data_type not in kinds:
        raise EnforceNotMet(
            f"unrecognized tensor type: {tensor.data_type}, of {name!r}. Caffe2 has operators for "
            "float32, float64, integers, bool and strings.",
            CALLER,
        )
    values: Any = list(tensor.string_data)
    if tensor.data_type != 8:
        values = numpy_helper.to_array(tensor).ravel().tolist()
    kind = f"GivenTensor{kinds[tensor.data_type]}Fill"
    return CreateOperator(kind, [], [name or tensor.name], values=values, shape=list(tensor.dims))
