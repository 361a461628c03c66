# SPDX-License-Identifier: Apache-2.0
"""Predictor exports: a database with the weights and, in one record, the nets (a MetaNetDef).

Caffe2's trainers wrote them as ``.mdl`` or ``.minidb``.

Follows caffe2/proto/metanet.proto and caffe2/python/predictor/predictor_exporter.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.serialize import deserialize

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.caffe2.conversion.entries import Entry

_CALLER = "predictor export"
_KEY = "!!META_NET_DEF"


class PredictorExport:
    """The nets of a predictor export, NetDefs, and the names of its blobs.

    net: computes the outputs. shapes: creates blobs of the inputs' sizes, or None.
    """

    __slots__ = ("inputs", "net", "outputs", "parameters", "shapes")

    def __init__(self, data: bytes) -> None:
        from bridge.caffe2.proto.metanet_pb2 import MetaNetDef

        meta = MetaNetDef.FromString(data)
        nets = {one.key: one.value for one in meta.nets}
        blobs = {one.key: list(one.value) for one in meta.blobs}
        self.net: Any = nets["PREDICT_NET_TYPE"]
        self.shapes: Any = nets.get("PREDICT_INIT_NET_TYPE")
        self.inputs: list[str] = blobs.get("INPUTS_BLOB_TYPE", [])
        self.outputs: list[str] = blobs.get("OUTPUTS_BLOB_TYPE", [])
        self.parameters: list[str] = blobs.get("PARAMETERS_BLOB_TYPE", [])


def predictor_export_in(entries: Sequence[Entry]) -> PredictorExport | None:
    """Return the nets among the entries of a database; None if it has none.

    Raises EnforceNotMet, also a ValueError: the record is damaged.
    """
    for entry in entries:
        if entry.name == _KEY and entry.message is not None:
            with wrapping(f"The nets in record {_KEY!r} cannot be read", _CALLER):
                blob = Blob()
                deserialize(blob, entry.message(), f"Blob {_KEY!r}", _CALLER)
                return PredictorExport(bytes(blob._object))
    return None
