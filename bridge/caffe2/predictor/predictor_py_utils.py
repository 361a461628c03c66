# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.predictor.predictor_py_utils``: the parts of a MetaNetDef.

A MetaNetDef holds nets, plans and lists of blobs, each by a key. The names of ``predictor.serde``
and ``caffe2.python.predictor_constants`` are here, too. Follows
caffe2/python/predictor/predictor_py_utils.py, PyTorch 1.8.1.

>>> from bridge.caffe2.predictor import predictor_py_utils
>>> from bridge.caffe2.proto import metanet_pb2
>>> meta = metanet_pb2.MetaNetDef()
>>> predictor_py_utils.AddBlobs(meta, "inputs", ["data"])
>>> predictor_py_utils.GetBlobs(meta, "inputs")
['data']
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.core.net import Net
from bridge.caffe2.definitions.scope import EmptyDeviceScope
from bridge.caffe2.proto import predictor_consts_pb2

__all__ = [
    "AddBlobs",
    "AddModelIdArg",
    "AddNet",
    "AddPlan",
    "GetApplicationSpecificInfo",
    "GetArgumentByName",
    "GetBlobs",
    "GetBlobsByTypePrefix",
    "GetBlobsOrder",
    "GetNet",
    "GetNetOriginal",
    "GetPlan",
    "GetPlanOriginal",
    "ReplaceBlobs",
    "SetAOTConfig",
    "SetBlobsOrder",
    "SetPreLoadBlobs",
    "SetRequestOnlyEmbeddings",
    "SetTensorBoundShapes",
    "create_predict_init_net",
    "create_predict_net",
    "deserialize_protobuf_struct",
    "get_comp_name",
    "predictor_constants",
    "serialize_protobuf_struct",
]

# Names of blobs and nets in exported files.
predictor_constants = predictor_consts_pb2.PredictorConsts()


def create_predict_net(predictor_export_meta: Any) -> Any:
    """Return the NetDef that predicts: the operators of the exported net, and its arguments."""
    meta = predictor_export_meta
    source = meta.predict_net
    net = Net(source.name or "predict").Proto()
    net.op.extend(source.op)
    net.partition_info.extend(source.partition_info)
    net.external_input.extend([*meta.inputs, *meta.parameters])
    net.external_output.extend(meta.outputs)
    net.arg.extend(source.arg)
    if meta.net_type is not None:
        net.type = meta.net_type
    if meta.num_workers is not None:
        net.num_workers = meta.num_workers
    return net


def create_predict_init_net(ws: Any, predictor_export_meta: Any) -> Any:
    """Return the NetDef that fills inputs and outputs with zeros, then runs `extra_init_net`.

    ws: a workspace; blobs whose shape is not in `shapes` have the shape of the blob there. Raises
    EnforceNotMet: there is no such blob.
    """
    meta = predictor_export_meta
    net = Net("predict-init")
    blobs = [*meta.inputs, *meta.outputs]
    for blob in blobs:
        shape = meta.shapes.get(blob)
        if shape is None:
            if blob not in ws.blobs:
                raise EnforceNotMet(
                    f"{blob} not in workspace but needed for shape: {list(ws.blobs)}",
                    "create_predict_init_net",
                )
            shape = ws.blobs[blob].fetch().shape
        # Without a device of its own, a fill is where the whole net is.
        with EmptyDeviceScope():
            net.ConstantFill([], blob, shape=shape, value=0.0)
    net.Proto().external_input.extend(blobs)
    if meta.extra_init_net:
        net.AppendNet(meta.extra_init_net)
    AddModelIdArg(meta, net.Proto())
    return net.Proto()


def get_comp_name(string: str, name: str) -> str:
    """Return the key of a part of the model `name`, which may be empty."""
    return f"{string}_{name}" if name else string


def _value(entries: Iterable[Any], key: str) -> Any:
    return next((entry.value for entry in entries if entry.key == key), None)


def GetPlan(meta_net_def: Any, key: str) -> Any:
    """Return the PlanDef of a key, or None."""
    return _value(meta_net_def.plans, key)


GetPlanOriginal = GetPlan


def GetNet(meta_net_def: Any, key: str) -> Any:
    """Return the NetDef of a key, or None."""
    return _value(meta_net_def.nets, key)


GetNetOriginal = GetNet


def GetBlobs(meta_net_def: Any, key: str) -> Any:
    """Return the names of blobs of a key, not a copy; an empty list if there is none."""
    found = _value(meta_net_def.blobs, key)
    return [] if found is None else found


def GetBlobsByTypePrefix(meta_net_def: Any, blob_type_prefix: str) -> list[str]:
    """Return the names of blobs of all keys with a prefix, each once."""
    lists = [entry.value for entry in meta_net_def.blobs if entry.key.startswith(blob_type_prefix)]
    return list(dict.fromkeys(blob for blobs in lists for blob in blobs))


def GetApplicationSpecificInfo(meta_net_def: Any, key: str) -> Any:
    """Return the text of a key, or None."""
    return _value(meta_net_def.applicationSpecificInfo, key)


def AddBlobs(meta_net_def: Any, blob_name: str, blob_def: Iterable[str]) -> None:
    """Append names of blobs to the names of the key `blob_name`."""
    blobs = _value(meta_net_def.blobs, blob_name)
    if blobs is None:
        blobs = meta_net_def.blobs.add(key=blob_name).value
    blobs.extend(blob_def)


def ReplaceBlobs(meta_net_def: Any, blob_name: str, blob_def: Iterable[str]) -> None:
    """Replace the names of blobs of the key `blob_name`; raise an AssertionError if it is new."""
    blobs = _value(meta_net_def.blobs, blob_name)
    if blobs is None:
        raise EnforceAssertionError(f"The blob_name:{blob_name} does not exist", "ReplaceBlobs")
    blobs[:] = blob_def


def AddPlan(meta_net_def: Any, plan_name: str, plan_def: Any) -> None:
    """Add a PlanDef under a key."""
    meta_net_def.plans.add(key=plan_name, value=plan_def)


def AddNet(meta_net_def: Any, net_name: str, net_def: Any) -> None:
    """Add a NetDef under a key."""
    meta_net_def.nets.add(key=net_name, value=net_def)


def SetBlobsOrder(meta_net_def: Any, blobs_order: Sequence[str]) -> None:
    """Append to the order of blobs."""
    meta_net_def.blobsOrder.extend(blobs_order)


def GetBlobsOrder(meta_net_def: Any) -> Any:
    """Return the order of blobs, not a copy."""
    return meta_net_def.blobsOrder


def SetPreLoadBlobs(meta_net_def: Any, pre_load_blobs: Sequence[str]) -> None:
    """Append to the blobs that are loaded before others."""
    meta_net_def.preLoadBlobs.extend(pre_load_blobs)


def SetRequestOnlyEmbeddings(meta_net_def: Any, request_only_embeddings: Sequence[str]) -> None:
    """Append to the embeddings that requests only have."""
    meta_net_def.requestOnlyEmbeddings.extend(request_only_embeddings)


def SetTensorBoundShapes(meta_net_def: Any, tensor_bound_shapes: Any) -> None:
    """Set the TensorBoundShapes, as a copy."""
    meta_net_def.tensorBoundShapes.CopyFrom(tensor_bound_shapes)


def SetAOTConfig(meta_net_def: Any, aot_config: Any) -> None:
    """Set the AOTConfig, as a copy."""
    meta_net_def.aotConfig.CopyFrom(aot_config)


def GetArgumentByName(net_def: Any, arg_name: str) -> Any:
    """Return the Argument of a NetDef that has a name, or None."""
    return next((arg for arg in net_def.arg if arg.name == arg_name), None)


def AddModelIdArg(meta_net_def: Any, net_def: Any) -> None:
    """Set the argument model_id of a NetDef to the predicting net's, if it has one."""
    source = GetArgumentByName(meta_net_def.predict_net, "model_id")
    if source is None:
        return
    argument = GetArgumentByName(net_def, "model_id") or net_def.arg.add(name="model_id")
    argument.i = source.i


def serialize_protobuf_struct(protobuf_struct: Any) -> bytes:
    """Return a message as bytes."""
    serialized: bytes = protobuf_struct.SerializeToString()
    return serialized


def deserialize_protobuf_struct(serialized_protobuf: bytes, struct_type: type) -> Any:
    """Return the message of the class `struct_type` that bytes hold."""
    message = struct_type()
    message.ParseFromString(serialized_protobuf)
    return message
