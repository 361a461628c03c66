# SPDX-License-Identifier: Apache-2.0
"""Export of a net and the values of its parameters as the two NetDefs that a Predictor runs.

Follows caffe2/python/predictor/mobile_exporter.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core, workspace
>>> from bridge.caffe2.predictor import mobile_exporter
>>> net = core.Net("exported")
>>> y = net.Add(["data", "bias"], "y")
>>> workspace.FeedBlob("bias", np.array([1.0], np.float32))
True
>>> init_net, predict_net = mobile_exporter.Export(workspace, net, ["bias"])
>>> workspace.Predictor(init_net, predict_net).run({"data": np.array([2.0], np.float32)})
[array([3.], dtype=float32)]
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any, Array
from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.messages import caffe2_pb2, copied
from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.definitions.ssa import get_ssa

__all__ = ["Export", "add_tensor"]

# By NumPy's name of the element type, the operator that creates such a tensor.
_FILL_OPERATORS = {
    "float32": "GivenTensorFill",
    "int32": "GivenTensorIntFill",
    "int64": "GivenTensorInt64Fill",
    "uint8": "GivenTensorByteStringToUInt8Fill",
    "object": "GivenTensorStringFill",
}


def add_tensor(net: Any, name: str, blob: Array) -> None:
    """Append an operator to the NetDef `net` that creates the blob `name` with these values.

    The values are copied into the message. Raises EnforceNotMet, also a ValueError: `blob` is not
    an array of float32, int32, int64, uint8 or `bytes`.
    """
    if not hasattr(blob, "dtype"):
        raise EnforceValueError(
            f"Blob {name!r} holds {type(blob).__name__}; only arrays can be exported.",
            "add_tensor",
        )
    op_type = _FILL_OPERATORS.get(blob.dtype.name)
    objects = blob.reshape(-1).tolist() if blob.dtype.name == "object" else []
    if op_type is None or not all(isinstance(one, bytes) for one in objects):
        raise EnforceValueError(
            f"Blob {name!r} has elements of type {blob.dtype}; exported are "
            f"{', '.join(_FILL_OPERATORS)}, where objects are bytes.",
            "add_tensor",
        )
    values: Any = [blob.tobytes()] if blob.dtype.name == "uint8" else blob
    net.op.append(_fill(op_type, name, blob.shape, values))


def _fill(op_type: str, name: str, shape: Any, values: Any) -> Any:
    arguments = [MakeArgument("shape", shape), MakeArgument("values", values)]
    return CreateOperator(op_type, [], [BlobReference(name)], arg=arguments)


def Export(workspace: Any, net: Any, params: Iterable[Any]) -> tuple[Any, Any]:
    """Return two NetDefs: one that creates the parameters, and one that predicts.

    workspace: an object whose ``FetchBlob`` returns the values of the parameters. net: a
    ``core.Net`` or a NetDef. The first net also creates the inputs, of shape (1, 1), which a
    Predictor then feeds.

    Raises EnforceNotMet: `net` is neither, or a parameter is missing (also a KeyError) or of a type
    that cannot be exported (also a ValueError).
    """
    predict_net = copied(net, "NetDef", "Export")
    declared = list(predict_net.external_input)
    ssa, versions = get_ssa(predict_net)
    read = {name for inputs, _ in ssa for name, _ in inputs}
    parameters = [str(one) for one in params]
    inputs = [name for name, version in versions.items() if not version and name not in parameters]
    init_net = caffe2_pb2().NetDef()
    for name in parameters:
        add_tensor(init_net, name, workspace.FetchBlob(name))
    init_net.op.extend(_fill("GivenTensorFill", name, [1, 1], [0.0]) for name in inputs)
    del predict_net.external_input[:]
    predict_net.external_input.extend(dict.fromkeys([*inputs, *declared]))
    del predict_net.external_output[:]
    predict_net.external_output.extend(
        name for name, version in versions.items() if version and name not in read
    )
    return init_net, predict_net
