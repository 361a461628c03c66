# SPDX-License-Identifier: Apache-2.0
"""Export: a net and the values of its parameters, as the two nets that a Predictor runs.

Follows caffe2/python/predictor/mobile_exporter.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core, mobile_exporter, workspace
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

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.messages import as_message, caffe2_pb2
from bridge.caffe2.definitions.arguments import MakeArgument
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.definitions.ssa import get_ssa

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    import numpy as np

__all__ = ["Export", "add_tensor"]

_FILLS = {
    "float32": "GivenTensorFill",
    "int32": "GivenTensorIntFill",
    "int64": "GivenTensorInt64Fill",
    "uint8": "GivenTensorByteStringToUInt8Fill",
    "object": "GivenTensorStringFill",
}


def add_tensor(net: Any, name: str, blob: np.ndarray[Any, Any]) -> None:
    """Add an operator to the NetDef `net` that makes the array, which its message then holds.

    Raises EnforceNotMet, also a ValueError: no array, or elements other than float32, int32, int64,
    uint8 and `bytes`.
    """
    if not hasattr(blob, "dtype"):
        raise EnforceValueError(
            f"Blob {name!r} holds {type(blob).__name__}; what is exported is an array.",
            "add_tensor",
        )
    fill = _FILLS.get(blob.dtype.name)
    items = blob.reshape(-1).tolist() if blob.dtype.name == "object" else []
    if fill is None or not all(isinstance(one, bytes) for one in items):
        raise EnforceValueError(
            f"Blob {name!r} is of {blob.dtype}; an exported one is of {', '.join(_FILLS)}, with "
            "bytes for objects.",
            "add_tensor",
        )
    values: Any = [blob.tobytes()] if blob.dtype.name == "uint8" else blob
    arguments = [MakeArgument("shape", blob.shape), MakeArgument("values", values)]
    net.op.append(CreateOperator(fill, [], [BlobReference(name)], arg=arguments))


def Export(workspace: Any, net: Any, params: Iterable[Any]) -> tuple[Any, Any]:
    """Make a net that makes the parameters, and one that predicts, both NetDefs.

    workspace: what fetches the parameters by ``FetchBlob``. net: a ``core.Net`` or a NetDef. The
    first net also makes the inputs, of (1, 1), which a Predictor then feeds.

    Raises EnforceNotMet: no net, a parameter that is not there (also a KeyError) or of a type that
    no net holds (also a ValueError).
    """
    predict_net = caffe2_pb2().NetDef()
    predict_net.CopyFrom(as_message(net, "NetDef", "Export"))
    given = list(predict_net.external_input)
    ssa, versions = get_ssa(predict_net)
    used = {name for inputs, _ in ssa for name, _ in inputs}
    names = [str(one) for one in params]
    inputs = [name for name, version in versions.items() if not version and name not in names]
    init_net = caffe2_pb2().NetDef()
    for name in names:
        add_tensor(init_net, name, workspace.FetchBlob(name))
    for name in inputs:
        arguments = [MakeArgument("shape", [1, 1]), MakeArgument("values", [0.0])]
        init_net.op.append(
            CreateOperator("GivenTensorFill", [], [BlobReference(name)], arg=arguments)
        )
    del predict_net.external_input[:]
    predict_net.external_input.extend(dict.fromkeys([*inputs, *given]))
    del predict_net.external_output[:]
    predict_net.external_output.extend(
        name for name, version in versions.items() if version and name not in used
    )
    return init_net, predict_net
