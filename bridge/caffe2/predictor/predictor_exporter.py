# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.predictor.predictor_exporter``: a model in one file, and back.

The file is a database with the parameters and a MetaNetDef: the net that predicts, nets that
create its parameters, and the names of its blobs. Caffe2 reads these files, and the other
way round. Follows caffe2/python/predictor/predictor_exporter.py, PyTorch 1.8.1.

>>> import os, tempfile
>>> import numpy as np
>>> from bridge.caffe2 import brew, model_helper, workspace
>>> from bridge.caffe2.predictor import predictor_exporter
>>> model = model_helper.ModelHelper(name="exported")
>>> y = brew.fc(model, "x", "y", dim_in=3, dim_out=2)
>>> workspace.RunNetOnce(model.param_init_net)
True
>>> meta = predictor_exporter.PredictorExportMeta(
...     model.net, model.params, inputs=["x"], outputs=["y"], shapes={"x": (1, 3), "y": (1, 2)}
... )
>>> path = os.path.join(tempfile.mkdtemp(), "model.minidb")
>>> predictor_exporter.save_to_db("minidb", path, meta)
>>> workspace.ResetWorkspace()
True
>>> net = predictor_exporter.prepare_prediction_net(path, "minidb")
>>> workspace.FeedBlob("x", np.ones((4, 3), np.float32))
True
>>> workspace.RunNet(net)
True
>>> workspace.FetchBlob("y").shape
(4, 2)
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.core.net import Net
from bridge.caffe2.core.plan import Plan
from bridge.caffe2.definitions.create_operator import CreateOperator, DeviceOption
from bridge.caffe2.definitions.scope import CurrentDeviceScope, DeviceScope
from bridge.caffe2.predictor import predictor_py_utils as utils
from bridge.caffe2.predictor.predictor_py_utils import (
    deserialize_protobuf_struct,
    predictor_constants,
    serialize_protobuf_struct,
)
from bridge.caffe2.proto import caffe2_pb2, metanet_pb2
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob
from bridge.caffe2.workspaces.named_nets import CreateNet, RunNetOnce
from bridge.caffe2.workspaces.run_once import RunOperatorOnce
from bridge.caffe2.workspaces.workspace import Workspace

__all__ = [
    "PredictorExportMeta",
    "get_meta_net_def",
    "get_predictor_exporter_helper",
    "load_from_db",
    "prepare_prediction_net",
    "save_to_db",
    "set_model_info",
]

_Fields = namedtuple(
    "_Fields",
    "predict_net parameters inputs outputs shapes name extra_init_net global_init_net net_type "
    "num_workers trainer_prefix",
)


class PredictorExportMeta(_Fields):
    """The parts of an export.

    predict_net: a Net, a Plan, a NetDef or a PlanDef. parameters, inputs, outputs: blobs or their
    names; the shape of an input or output comes from `shapes`, a dict, or from its blob. name:
    part of the keys in the file, for several models in one. extra_init_net: a net that runs after
    inputs and outputs are filled with zeros. global_init_net: a net that runs after the parameters
    are loaded. net_type, num_workers: fields of the exported NetDef. trainer_prefix: part of the
    keys of plans.

    Raises EnforceNotMet, also an AssertionError: an input is listed twice, a parameter is an input
    or an output, or `predict_net` is none of these.
    """

    __slots__ = ()

    def __new__(
        cls,
        predict_net: Any,
        parameters: Iterable[Any],
        inputs: Iterable[Any],
        outputs: Iterable[Any],
        shapes: dict[str, Any] | None = None,
        name: str = "",
        extra_init_net: Any = None,
        global_init_net: Any = None,
        net_type: str | None = None,
        num_workers: int | None = None,
        trainer_prefix: str | None = None,
    ) -> PredictorExportMeta:
        """Create the description; see the class."""
        inputs, outputs, parameters = (
            [str(blob) for blob in blobs] for blobs in (inputs, outputs, parameters)
        )
        if len(set(inputs)) != len(inputs):
            raise EnforceAssertionError(
                f"All inputs to the predictor should be unique: {inputs}", cls.__name__
            )
        for kind, blobs in (("inputs", inputs), ("outputs", outputs)):
            common = sorted(set(parameters).intersection(blobs))
            if common:
                raise EnforceAssertionError(
                    f"Parameters and {kind} are required to be disjoint. Intersection: {common}",
                    cls.__name__,
                )
        if isinstance(predict_net, (Net, Plan)):
            predict_net = predict_net.Proto()
        if not isinstance(predict_net, (caffe2_pb2.NetDef, caffe2_pb2.PlanDef)):
            raise EnforceAssertionError(
                f"predict_net must be a net or a plan, not a {type(predict_net).__name__}.",
                cls.__name__,
            )
        return super().__new__(
            cls,
            predict_net,
            parameters,
            inputs,
            outputs,
            shapes or {},
            name,
            extra_init_net,
            global_init_net,
            net_type,
            num_workers,
            trainer_prefix,
        )

    def _key(self, kind: str) -> str:
        return utils.get_comp_name(kind, self.name)

    def _plan_key(self, kind: str) -> str:
        key = self._key(kind)
        return f"{self.trainer_prefix}_{key}" if self.trainer_prefix else key

    def inputs_name(self) -> str:
        """Return the key of the inputs."""
        return self._key(predictor_constants.INPUTS_BLOB_TYPE)

    def outputs_name(self) -> str:
        """Return the key of the outputs."""
        return self._key(predictor_constants.OUTPUTS_BLOB_TYPE)

    def parameters_name(self) -> str:
        """Return the key of the parameters."""
        return self._key(predictor_constants.PARAMETERS_BLOB_TYPE)

    def global_init_name(self) -> str:
        """Return the key of the net that loads the parameters."""
        return self._key(predictor_constants.GLOBAL_INIT_NET_TYPE)

    def predict_init_name(self) -> str:
        """Return the key of the net that fills inputs and outputs."""
        return self._key(predictor_constants.PREDICT_INIT_NET_TYPE)

    def predict_net_name(self) -> str:
        """Return the key of the net that predicts."""
        return self._key(predictor_constants.PREDICT_NET_TYPE)

    def train_init_plan_name(self) -> str:
        """Return the key of the plan that begins a training."""
        return self._plan_key(predictor_constants.TRAIN_INIT_PLAN_TYPE)

    def train_plan_name(self) -> str:
        """Return the key of the plan that trains."""
        return self._plan_key(predictor_constants.TRAIN_PLAN_TYPE)


def get_predictor_exporter_helper(submodelNetName: str) -> PredictorExportMeta:
    """Return a PredictorExportMeta without blobs, for the keys of the model of a name."""
    net = Net(submodelNetName)
    return PredictorExportMeta(net, [], [], [], name=submodelNetName)


def _global_init_net(meta: PredictorExportMeta, db_type: str | None) -> Any:
    """Return the NetDef that loads the parameters from the open file."""
    net = Net("global-init")
    if db_type != "manifold_db":  # it needs no reader
        net.Load([predictor_constants.PREDICTOR_DBREADER], meta.parameters)
        net.Proto().external_input.extend([predictor_constants.PREDICTOR_DBREADER])
        net.Proto().external_output.extend(meta.parameters)
    if meta.global_init_net:
        net.AppendNet(meta.global_init_net)
    utils.AddModelIdArg(meta, net.Proto())
    return net.Proto()


def get_meta_net_def(
    predictor_export_meta: PredictorExportMeta, ws: Any = None, db_type: str | None = None
) -> Any:
    """Return the MetaNetDef of a model.

    ws: the workspace with blobs whose shapes are not given; None is the current one. Raises
    EnforceNotMet: there is no such blob.
    """
    meta = predictor_export_meta
    message = metanet_pb2.MetaNetDef()
    init_net = utils.create_predict_init_net(ws or Workspace.current, meta)
    utils.AddNet(message, meta.predict_init_name(), init_net)
    utils.AddNet(message, meta.global_init_name(), _global_init_net(meta, db_type))
    utils.AddNet(message, meta.predict_net_name(), utils.create_predict_net(meta))
    utils.AddBlobs(message, meta.parameters_name(), meta.parameters)
    utils.AddBlobs(message, meta.inputs_name(), meta.inputs)
    utils.AddBlobs(message, meta.outputs_name(), meta.outputs)
    return message


def set_model_info(meta_net_def: Any, project_str: str, model_class_str: str, version: str) -> None:
    """Set the project, the class and the version of a model in its MetaNetDef.

    Raises EnforceNotMet, also an AssertionError: `meta_net_def` is not a MetaNetDef.
    """
    if not isinstance(meta_net_def, metanet_pb2.MetaNetDef):
        raise EnforceAssertionError(
            f"Expected a MetaNetDef, not a {type(meta_net_def).__name__}.", "set_model_info"
        )
    meta_net_def.modelInfo.project = project_str
    meta_net_def.modelInfo.modelClass = model_class_str
    meta_net_def.modelInfo.version = version


def save_to_db(
    db_type: str,
    db_destination: str,
    predictor_export_meta: PredictorExportMeta,
    use_ideep: bool = False,
    *args: Any,
    **kwargs: Any,
) -> None:
    """Write a model and the values of its parameters to a new file.

    db_type: "minidb" or "lmdb". kwargs: arguments of the operator Save. The workspace holds the
    parameters, and a blob of the MetaNetDef afterwards. Raises EnforceNotMet: a parameter has no
    value, or the file cannot be written.
    """
    message = get_meta_net_def(predictor_export_meta, db_type=db_type)
    name = predictor_constants.META_NET_DEF
    with DeviceScope(DeviceOption(caffe2_pb2.CPU)):
        FeedBlob(name, serialize_protobuf_struct(message))
    device = caffe2_pb2.IDEEP if use_ideep else caffe2_pb2.CPU
    RunOperatorOnce(
        CreateOperator(
            "Save",
            [name, *predictor_export_meta.parameters],
            [],
            device_option=DeviceOption(device),
            absolute_path=True,
            db=db_destination,
            db_type=db_type,
            **kwargs,
        )
    )


def load_from_db(
    filename: str, db_type: str, device_option: Any = None, *args: Any, **kwargs: Any
) -> Any:
    """Open a file of `save_to_db`; return its MetaNetDef.

    The reader stays open in the workspace, for the net that loads the parameters. device_option:
    the device of all operators; None is the current one, or that which the file says. Raises
    EnforceNotMet: the file cannot be read; also a ValueError: it has no MetaNetDef.
    """
    reader, name = predictor_constants.PREDICTOR_DBREADER, predictor_constants.META_NET_DEF
    RunOperatorOnce(CreateOperator("CreateDB", [], [reader], db=filename, db_type=db_type))
    RunOperatorOnce(CreateOperator("Load", [reader], [name]))
    blob = FetchBlob(name)
    serialized = blob if isinstance(blob, bytes) else str(blob).encode("utf-8")
    try:
        message = deserialize_protobuf_struct(serialized, metanet_pb2.MetaNetDef)
    except Exception as cause:
        raise EnforceValueError(
            f"{name!r} of {filename!r} is not a MetaNetDef: {cause}", "load_from_db"
        ) from cause
    device_option = device_option or CurrentDeviceScope()
    if device_option is not None:
        for entry in message.nets:
            for operator in entry.value.op:
                operator.device_option.CopyFrom(device_option)
    return message


def prepare_prediction_net(filename: str, db_type: str, device_option: Any = None) -> Net:
    """Load a file of `save_to_db` into the workspace; return the net that predicts, created.

    Raises EnforceNotMet: as `load_from_db`.
    """
    message = load_from_db(filename, db_type, device_option)
    for kind in (
        predictor_constants.GLOBAL_INIT_NET_TYPE,
        predictor_constants.PREDICT_INIT_NET_TYPE,
    ):
        RunNetOnce(utils.GetNet(message, kind))
    net = Net(utils.GetNet(message, predictor_constants.PREDICT_NET_TYPE))
    CreateNet(net)
    return net
