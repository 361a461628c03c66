# SPDX-License-Identifier: Apache-2.0
"""`caffe2_pb2` has the real Caffe2's messages, and behaves as a generated module does."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, json_format, text_format
from google.protobuf.message import EncodeError

from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.isolate import run_python

REAL = descriptor_pb2.FileDescriptorProto.FromString(
    (Path(__file__).parents[2] / "golden" / "caffe2.proto.descriptor").read_bytes()
)
MESSAGES = [message.name for message in REAL.message_type]


def ours() -> descriptor_pb2.FileDescriptorProto:
    file = descriptor_pb2.FileDescriptorProto()
    caffe2_pb2.DESCRIPTOR.CopyToProto(file)
    return file


def by_name(items: Any) -> dict[str, Any]:
    return {item.name: item for item in items}


@pytest.mark.parametrize("name", MESSAGES)
def test_message_has_the_real_fields_enums_and_defaults(name: str) -> None:
    want = by_name(REAL.message_type)[name]
    got = by_name(ours().message_type)[name]
    assert by_name(got.field) == by_name(want.field)
    assert by_name(got.enum_type) == by_name(want.enum_type)
    assert by_name(got.nested_type) == by_name(want.nested_type)
    assert got == want


def test_file_as_a_whole_is_the_real_one() -> None:
    assert ours() == REAL


@pytest.mark.parametrize("name", MESSAGES)
def test_module_has_a_class_for_each_message(name: str) -> None:
    made = getattr(caffe2_pb2, name)()
    assert made.DESCRIPTOR.full_name == f"caffe2.{name}"
    assert (type(made).__module__, type(made).__qualname__) == (caffe2_pb2.__name__, name)


def test_enum_values_and_wrappers_stand_where_generated_code_has_them() -> None:
    assert caffe2_pb2.TensorProto.FLOAT == 1
    assert caffe2_pb2.TensorProto.DataType.Value("FLOAT16") == 12
    assert caffe2_pb2.TensorProto.DataType.Name(13) == "DOUBLE"
    assert dict(caffe2_pb2.TensorProto.DataType.items())["ZERO_COLLISION_HASH"] == 14
    assert caffe2_pb2.PROTO_CUDA == caffe2_pb2.DeviceTypeProto.Value("PROTO_CUDA") == 1
    assert caffe2_pb2.NetDef.OP_FIELD_NUMBER == 2
    assert caffe2_pb2._TENSORPROTO_DATATYPE.values_by_name["INT64"].number == 10
    assert caffe2_pb2._TENSORPROTO_SEGMENT is caffe2_pb2.TensorProto.Segment.DESCRIPTOR


def test_device_types_have_caffe2s_short_names_too() -> None:
    short = {name.removeprefix("PROTO_"): n for name, n in caffe2_pb2.DeviceTypeProto.items()}
    assert {name: getattr(caffe2_pb2, name) for name in short} == short
    assert (caffe2_pb2.CPU, caffe2_pb2.CUDA, caffe2_pb2.HIP) == (0, 1, 6)


def net() -> Any:
    made = caffe2_pb2.NetDef(name="n", external_input=["x"])
    op = made.op.add(type="FC", input=["x", "w"], output=["y"])
    op.arg.add(name="axis", i=1)
    op.arg.add(name="t", t=caffe2_pb2.TensorProto(dims=[2], float_data=[1, 2.5]))
    op.arg[1].t.segment.begin, op.arg[1].t.segment.end = 0, 2
    op.device_option.device_type = caffe2_pb2.CUDA
    made.arg.add(name="n", n=caffe2_pb2.NetDef(name="inner"))
    return made


def test_message_survives_bytes_text_and_json() -> None:
    made = net()
    assert caffe2_pb2.NetDef.FromString(made.SerializeToString()) == made
    assert text_format.Parse(text_format.MessageToString(made), caffe2_pb2.NetDef()) == made
    assert json_format.Parse(json_format.MessageToJson(made), caffe2_pb2.NetDef()) == made


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
def test_messages_and_nested_messages_are_pickled_and_copied(protocol: int) -> None:
    for made in (net(), caffe2_pb2.TensorProto.Segment(begin=1, end=2)):
        for twin in (pickle.loads(pickle.dumps(made, protocol)), copy.deepcopy(made)):
            assert type(twin) is type(made)
            assert twin == made
            assert twin is not made


def test_required_fields_are_required() -> None:
    half = caffe2_pb2.TensorProto.Segment(begin=1)
    assert not half.IsInitialized()
    with pytest.raises(EncodeError, match="end"):
        half.SerializeToString()


BESIDE_ANOTHER = """
import sys
from google.protobuf import descriptor_pool, message_factory

def other():
    pool = descriptor_pool.Default()
    with open(sys.argv[1], "rb") as file:
        pool.AddSerializedFile(file.read())
    found = pool.FindMessageTypeByName("caffe2.NetDef")
    if hasattr(message_factory, "GetMessageClass"):
        return message_factory.GetMessageClass(found)
    return message_factory.MessageFactory(pool).GetPrototype(found)

if sys.argv[2] == "after":
    theirs = other()
from bridge.caffe2.proto import caffe2_pb2
if sys.argv[2] == "before":
    theirs = other()
assert theirs is not caffe2_pb2.NetDef
net = caffe2_pb2.NetDef(op=[caffe2_pb2.OperatorDef(type="Relu")])
assert theirs.FromString(net.SerializeToString()).op[0].type == "Relu"
"""


@pytest.mark.parametrize("order", ["before", "after"])
@pytest.mark.parametrize("implementation", ["upb", "python"])
def test_loads_beside_another_registration_of_the_same_names(
    order: str, implementation: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another enum value makes it a different file, which one pool would refuse."""
    if implementation == "upb":
        pytest.importorskip("google._upb", reason="this protobuf has no compiled module")
    changed = descriptor_pb2.FileDescriptorProto()
    changed.CopyFrom(REAL)
    changed.enum_type[0].value.add(name="PROTO_MORE", number=11)
    other = tmp_path / "descriptor"
    other.write_bytes(changed.SerializeToString())
    monkeypatch.setenv("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", implementation)
    subprocess.run(
        [sys.executable, "-W", "error", "-c", BESIDE_ANOTHER, str(other), order],
        check=True,
        timeout=300,
    )


def test_loads_where_a_script_asks_for_protobufs_old_implementation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION", "cpp")
    code = """
import os
from bridge.caffe2.proto import caffe2_pb2
print(caffe2_pb2.NetDef(name="net").name, os.environ["PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION"])
"""
    assert run_python(code).split() == ["net", "cpp"]
