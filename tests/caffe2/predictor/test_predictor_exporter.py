# SPDX-License-Identifier: Apache-2.0
"""A model in one file; the file beside `exported` was written by the real Caffe2."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, predictor_exporter, save_checkpoint, workspace
from bridge.caffe2 import predictor_py_utils as utils
from bridge.caffe2.predictor.predictor_py_utils import (
    deserialize_protobuf_struct,
    predictor_constants,
    serialize_protobuf_struct,
)
from bridge.caffe2.proto import caffe2_pb2, metanet_pb2
from tests.conformance.models.exported import DATA, export

THEIRS = Path(__file__).parents[2] / "conformance" / "models" / "exported.minidb"
MODULES = SimpleNamespace(core=core, workspace=workspace, predictor_exporter=predictor_exporter)

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def meta(**kwargs: Any) -> predictor_exporter.PredictorExportMeta:
    given = {"predict_net": core.Net("n"), "parameters": ["w"], "inputs": ["x"], "outputs": ["y"]}
    return predictor_exporter.PredictorExportMeta(**{**given, **kwargs})


def test_the_file_has_the_bytes_of_caffe2(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core.Net, "_net_names_used", set())  # other tests have used the names
    path = tmp_path / "exported.minidb"
    export(MODULES, str(path))
    assert path.read_bytes() == THEIRS.read_bytes()


def test_a_file_of_caffe2_is_loaded_and_predicts() -> None:
    net = predictor_exporter.prepare_prediction_net(str(THEIRS), "minidb")
    assert workspace.FetchBlob("data").tolist() == [[1.0, 1.0, 1.0]]
    assert workspace.FetchBlob("shared").tolist() == [2.0, 2.0]
    workspace.FeedBlob("data", DATA)
    workspace.RunNet(net)
    w = np.linspace(-1, 1, 12).astype(np.float32).reshape(4, 3)
    expected = np.maximum(DATA @ w.T + np.arange(4), 0)
    np.testing.assert_allclose(workspace.FetchBlob("out"), expected, rtol=1e-5)


def test_all_operators_are_moved_to_a_device() -> None:
    device = core.DeviceOption(caffe2_pb2.CPU, 1)
    message = predictor_exporter.load_from_db(str(THEIRS), "minidb", device)
    with core.DeviceScope(device):
        assert predictor_exporter.load_from_db(str(THEIRS), "minidb") == message
    found = [op.device_option for entry in message.nets for op in entry.value.op]
    assert found == [device] * len(found)


def test_shapes_come_from_blobs_unless_they_are_given() -> None:
    workspace.FeedBlob("x", np.zeros((2, 3), np.float32))
    workspace.FeedBlob("y", np.zeros(5, np.float32))
    message = predictor_exporter.get_meta_net_def(meta(shapes={"x": [7]}, name="model"))
    init_net = utils.GetNet(message, "PREDICT_INIT_NET_TYPE_model")
    shapes = [list(arg.ints) for op in init_net.op for arg in op.arg if arg.name == "shape"]
    assert shapes == [[7], [5]]
    workspace.ResetWorkspace()
    with pytest.raises(EnforceNotMet, match="x not in workspace but needed for shape"):
        predictor_exporter.get_meta_net_def(meta())


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"inputs": ["x", "x"]}, "should be unique"),
        ({"inputs": ["x", "w"]}, "Parameters and inputs are required to be disjoint"),
        ({"outputs": ["w"]}, "Parameters and outputs are required to be disjoint"),
        ({"predict_net": "n"}, "a net or a plan, not a str"),
    ],
)
def test_wrong_inputs_outputs_and_parameters_are_refused(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(EnforceNotMet, match=words) as error:
        meta(**wrong)
    assert isinstance(error.value, AssertionError)


def test_a_parameter_without_a_value_is_not_saved(tmp_path: Path) -> None:
    whole = meta(shapes={"x": [1], "y": [1]})
    with pytest.raises(EnforceNotMet):
        predictor_exporter.save_to_db("minidb", str(tmp_path / "file"), whole)
    assert not (tmp_path / "file").exists()


def test_keys_have_the_name_of_the_model() -> None:
    named = predictor_exporter.get_predictor_exporter_helper("sub")
    for kind, key in (
        (predictor_constants.INPUTS_BLOB_TYPE, named.inputs_name()),
        (predictor_constants.OUTPUTS_BLOB_TYPE, named.outputs_name()),
        (predictor_constants.PARAMETERS_BLOB_TYPE, named.parameters_name()),
        (predictor_constants.GLOBAL_INIT_NET_TYPE, named.global_init_name()),
        (predictor_constants.PREDICT_INIT_NET_TYPE, named.predict_init_name()),
        (predictor_constants.PREDICT_NET_TYPE, named.predict_net_name()),
        (predictor_constants.TRAIN_INIT_PLAN_TYPE, named.train_init_plan_name()),
        (predictor_constants.TRAIN_PLAN_TYPE, named.train_plan_name()),
    ):
        assert key == f"{kind}_sub"
    assert meta(trainer_prefix="t").train_plan_name() == "t_TRAIN_PLAN_TYPE"


def test_parts_of_a_message_are_added_and_read() -> None:
    message = metanet_pb2.MetaNetDef()
    utils.AddBlobs(message, "inputs_a", ["x"])
    utils.AddBlobs(message, "inputs_a", ["y"])
    utils.AddBlobs(message, "inputs_b", ["y", "z"])
    assert utils.GetBlobs(message, "inputs_a") == ["x", "y"]
    assert utils.GetBlobsByTypePrefix(message, "inputs") == ["x", "y", "z"]
    utils.ReplaceBlobs(message, "inputs_a", ["w"])
    assert utils.GetBlobs(message, "inputs_a") == ["w"]
    assert utils.GetBlobs(message, "none") == []
    with pytest.raises(EnforceNotMet, match="none does not exist"):
        utils.ReplaceBlobs(message, "none", [])
    utils.AddPlan(message, "plan", caffe2_pb2.PlanDef(name="p"))
    utils.AddNet(message, "net", caffe2_pb2.NetDef(name="n"))
    assert (utils.GetPlan(message, "plan").name, utils.GetNet(message, "net").name) == ("p", "n")
    assert utils.GetPlanOriginal(message, "none") is utils.GetNetOriginal(message, "none") is None
    utils.SetBlobsOrder(message, ["a", "b"])
    utils.SetPreLoadBlobs(message, ["c"])
    utils.SetRequestOnlyEmbeddings(message, ["d"])
    assert utils.GetBlobsOrder(message) == ["a", "b"]
    assert (message.preLoadBlobs, message.requestOnlyEmbeddings) == (["c"], ["d"])
    utils.SetTensorBoundShapes(message, caffe2_pb2.TensorBoundShapes(max_batch_size=3))
    utils.SetAOTConfig(message, caffe2_pb2.AOTConfig(max_batch_size=4, max_seq_size=1))
    assert (message.tensorBoundShapes.max_batch_size, message.aotConfig.max_batch_size) == (3, 4)
    message.applicationSpecificInfo.add(key="k", value="v")
    assert utils.GetApplicationSpecificInfo(message, "k") == "v"


def test_a_message_names_project_class_and_version_of_the_model() -> None:
    message = metanet_pb2.MetaNetDef()
    predictor_exporter.set_model_info(message, "project", "class", "1")
    assert message.modelInfo.modelClass == "class"
    assert message.modelInfo.predictorType == "SINGLE_PREDICTOR"
    serialized = serialize_protobuf_struct(message)
    assert deserialize_protobuf_struct(serialized, metanet_pb2.MetaNetDef) == message
    with pytest.raises(EnforceNotMet, match="not a NetDef"):
        predictor_exporter.set_model_info(caffe2_pb2.NetDef(), "project", "class", "1")


def test_the_id_of_a_model_is_replaced() -> None:
    net = caffe2_pb2.NetDef(arg=[caffe2_pb2.Argument(name="model_id", i=3)])
    other = caffe2_pb2.NetDef(arg=[caffe2_pb2.Argument(name="model_id", i=4)])
    utils.AddModelIdArg(meta(predict_net=net), other)
    assert utils.GetArgumentByName(other, "model_id").i == 3


def test_a_file_whose_nets_are_damaged_is_refused(tmp_path: Path) -> None:
    path = str(tmp_path / "x.minidb")
    name = predictor_constants.META_NET_DEF
    workspace.FeedBlob(name, b"\x0a\xff\xff")
    save_checkpoint(path, [name])
    with pytest.raises(EnforceNotMet, match="is not a MetaNetDef") as caught:
        predictor_exporter.load_from_db(path, "minidb")
    assert isinstance(caught.value, ValueError)
