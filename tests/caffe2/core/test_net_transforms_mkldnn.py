# SPDX-License-Identifier: Apache-2.0
"""A convolution on MKL-DNN takes the sum and the Relu after it into itself."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, transformations, workspace
from bridge.caffe2.proto import caffe2_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

pytestmark = pytest.mark.usefixtures("fresh_workspace")


def feed() -> None:
    random = np.random.RandomState(0)
    for name, sizes in {"x": (2, 3, 6, 6), "w": (4, 3, 3, 3), "b": (4,)}.items():
        workspace.FeedBlob(name, random.randn(*sizes).astype(np.float32))
    workspace.FeedBlob("s0", random.randn(2, 4, 4, 4).astype(np.float32))


def net_of(*operators: tuple[str, list[str], str]) -> Any:
    net = core.Net("fused")
    for op_type, inputs, output in operators:
        arguments = {"kernel": 3} if op_type == "Conv" else {}
        getattr(net, op_type)(inputs, output, **arguments)
    for operator in net.Proto().op:
        operator.device_option.device_type = caffe2_pb2.IDEEP
    return net


def types(net: Any) -> list[str]:
    return [operator.type for operator in net.Proto().op]


CONV = ("Conv", ["x", "w", "b"], "y")
ABS = ("Abs", ["s0"], "s")


@pytest.mark.parametrize(
    ("operators", "expected"),
    [
        ([CONV, ("Relu", ["y"], "y")], ["ConvFusion"]),
        ([CONV, ("Relu", ["y"], "r")], ["ConvFusion"]),
        ([("Conv", ["x", "w"], "y"), ("Relu", ["y"], "r")], ["ConvFusion"]),
        ([ABS, CONV, ("Sum", ["s", "y"], "s")], ["Abs", "ConvFusion"]),
        ([CONV, ABS, ("Add", ["y", "s"], "t")], ["Abs", "ConvFusion"]),
        (
            [ABS, CONV, ("Sum", ["s", "y"], "s"), ("Relu", ["s"], "r")],
            ["Abs", "ConvFusion"],
        ),
        # Another reads the convolution, the addend or the sum, or the addend is from outside.
        ([CONV, ("Relu", ["y"], "r"), ("Abs", ["y"], "t")], ["Conv", "Relu", "Abs"]),
        ([ABS, CONV, ("Sum", ["s", "y"], "t"), ("Abs", ["s"], "u")], ["Abs", "Conv", "Sum", "Abs"]),
        ([CONV, ("Sum", ["s0", "y"], "t")], ["Conv", "Sum"]),
        ([CONV, ("Sum", ["y", "y"], "t")], ["Conv", "Sum"]),
        (
            [ABS, CONV, ("Sum", ["s", "y"], "s"), ("Relu", ["s"], "r"), ("Abs", ["s"], "u")],
            ["Abs", "ConvFusion", "Relu", "Abs"],
        ),
        # What the convolution reads is overwritten before the sum.
        (
            [CONV, ABS, ("Relu", ["x"], "x"), ("Sum", ["s", "y"], "s")],
            ["Conv", "Abs", "Relu", "Sum"],
        ),
    ],
)
def test_a_fused_net_has_the_results_of_the_one_it_was(
    operators: list[tuple[str, list[str], str]], expected: list[str]
) -> None:
    feed()
    net = net_of(*operators)
    name = operators[-1][2]
    workspace.RunNetOnce(net)
    wanted = workspace.FetchBlob(name)
    feed()
    transformations.optimizeForMKLDNN(net)
    assert types(net) == expected
    workspace.RunNetOnce(net)
    np.testing.assert_allclose(workspace.FetchBlob(name), wanted, rtol=1e-5, atol=1e-5)


def test_a_blob_that_the_net_returns_keeps_its_value() -> None:
    feed()
    net = net_of(ABS, CONV, ("Sum", ["s", "y"], "t"))
    net.Proto().external_output.extend(["s", "t"])
    transformations.optimizeForMKLDNN(net)
    assert types(net) == ["Abs", "Conv", "Sum"]


def test_convolutions_on_the_cpu_stay() -> None:
    net = net_of(CONV, ("Relu", ["y"], "y"))
    net.Proto().op[1].device_option.Clear()
    transformations.optimizeForMKLDNN(net)
    assert types(net) == ["Conv", "Relu"]


@pytest.mark.parametrize(
    ("kind", "inputs"), [(4, ["x", "w", "b"]), (2, ["x", "w"]), (1, ["x", "w", "b", "s0"])]
)
def test_a_fusion_that_is_none_is_refused(kind: int, inputs: list[str]) -> None:
    feed()
    with pytest.raises(EnforceNotMet, match="ConvFusion"):
        workspace.RunOperatorOnce(
            core.CreateOperator("ConvFusion", inputs, ["y"], kernel=3, fusion_type=kind)
        )
