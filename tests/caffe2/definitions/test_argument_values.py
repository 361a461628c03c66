# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators: into messages, and back."""

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, utils, workspace
from bridge.caffe2.proto import caffe2_pb2
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def uninitialized() -> Any:
    return caffe2_pb2.TensorProto(segment=caffe2_pb2.TensorProto.Segment())


@pytest.mark.parametrize("value", [uninitialized(), [uninitialized()]])
def test_a_message_that_cannot_be_serialized_is_refused(value: Any) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        utils.MakeArgument("k", value)
    refused(raised.value, "segment.begin", kind=ValueError)


def test_nets_are_taken_as_messages_and_as_objects() -> None:
    net = core.Net("argument")
    net.Copy("x", "y")
    for one in (net, net.Proto()):
        assert utils.MakeArgument("k", one).n == net.Proto()
        assert list(utils.MakeArgument("k", [one, one]).nets) == [net.Proto()] * 2


def test_of_two_values_the_one_of_the_type_of_the_default_counts() -> None:
    """As the real Caffe2 does: ConstantFill of such a `value` fills 1.5, of int32 it fills 3."""
    both = caffe2_pb2.Argument(name="value", f=1.5, i=3)
    for kind, expected in ((core.DataType.FLOAT, 1.5), (core.DataType.INT32, 3)):
        op = core.CreateOperator("ConstantFill", [], "y", shape=[1], dtype=kind, arg=[both])
        workspace.RunOperatorOnce(op)
        assert workspace.FetchBlob("y").tolist() == [expected]


def test_a_name_that_comes_twice_is_refused_unless_it_says_the_same() -> None:
    one, other = utils.MakeArgument("shape", [1]), utils.MakeArgument("shape", [2])
    assert workspace.RunOperatorOnce(core.CreateOperator("ConstantFill", [], "y", arg=[one, one]))
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunOperatorOnce(core.CreateOperator("ConstantFill", [], "z", arg=[one, other]))
    refused(raised.value, "'shape'", "different contents")
    assert not workspace.HasBlob("z")


def test_an_operator_keeps_its_arguments_when_the_message_changes() -> None:
    inner = core.Net("argument")
    inner.Copy("x", "y")
    message = caffe2_pb2.NetDef(name="outer")
    message.op.append(core.CreateOperator("If", "condition", [], then_net=inner.Proto()))
    workspace.FeedBlob("condition", np.array([True]))
    workspace.FeedBlob("x", np.array([3.0]))
    workspace.CreateNet(message)
    message.op[0].arg[0].n.op[0].type = "Gone"
    workspace.RunNet("outer")
    assert workspace.FetchBlob("y").tolist() == [3]
