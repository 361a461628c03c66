# SPDX-License-Identifier: Apache-2.0
"""Operators declared as functions: what the declaration gives, and where results go."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import c10, caffe2
from bridge.caffe2 import core, workspace
from bridge.caffe2.blobs.string_arrays import Strings
from bridge.caffe2.definitions.schemas import schema_of

pytestmark = pytest.mark.usefixtures("fresh_workspace")

Tensor = torch.Tensor
Out = Any


@caffe2.operator("FnAxpy", inplace="0>0", gradient="Scale{scale=2.0} g0 > 0")
def axpy(x: Tensor, y: Tensor | None = None, *, a: float = 0.1, times: int = 1) -> Tensor:
    """x + a * y, `times` times."""
    for _ in range(times):
        x = x + a * (x if y is None else y)
    return x


@caffe2.operator("FnParts", types=None, outputs="1-2")
def parts(x: Tensor, *, sizes: list[int]) -> tuple[Tensor, ...]:
    """The rows of x in parts."""
    return tuple(torch.split(x, sizes))


@caffe2.operator("FnSame", inplace=[(0, 0)], types=None)
def same(x: Tensor) -> Tensor:
    """A view of x as a vector."""
    return x.view(-1)


@caffe2.operator("FnText")
def text(x: Tensor) -> Any:
    """The elements of x as strings."""
    return np.array([b"%g" % one for one in x.tolist()], object)


@caffe2.operator("FnJoined", types={"xs": "xs"}, inputs="1-*")
def joined(*xs: Tensor) -> Tensor:
    """The inputs, of any type that they share, one after the other."""
    return torch.cat(xs)


@caffe2.operator("FnFirstRow", inplace="0>0!")
def first_row(x: Tensor, row: Tensor, *, out: Out = None) -> Tensor:
    """Return x with its first row replaced."""
    target = x.clone() if out is None else out
    target[0] = row
    return target


def feed(**values: Any) -> None:
    for name, value in values.items():
        workspace.FeedBlob(name, np.asarray(value))


def run(op_type: str, inputs: list[str], outputs: list[str], **arguments: Any) -> None:
    workspace.RunOperatorOnce(core.CreateOperator(op_type, inputs, outputs, **arguments))


def test_arguments_have_the_types_and_defaults_of_the_parameters() -> None:
    feed(x=np.float32([1, 2]), y=np.float32([10, 20]))
    run("FnAxpy", ["x", "y"], ["z"], times=2)
    np.testing.assert_allclose(workspace.FetchBlob("z"), [3, 6], rtol=1e-6)
    with pytest.raises(c10.EnforceNotMet, match=r"times.*int"):
        run("FnAxpy", ["x", "y"], ["z"], times=1.5)


def test_an_argument_without_a_default_is_required() -> None:
    feed(x=np.float32([1, 2]))
    with pytest.raises(c10.EnforceNotMet, match="sizes is missing"):
        run("FnParts", ["x"], ["a"])


def test_schema_is_that_of_the_signature() -> None:
    assert schema_of("FnAxpy").text == "1-2:1:0>0"
    assert schema_of("FnParts").text == "1:1-2:"
    feed(x=np.float32([1]))
    with pytest.raises(c10.EnforceNotMet, match="is given 3 inputs; it takes 1 to 2 inputs"):
        run("FnAxpy", ["x"] * 3, ["z"])


def test_gradient_is_the_declared_one() -> None:
    op = core.CreateOperator("FnAxpy", ["x", "y"], ["z"])
    ops, gradients = core.GradientRegistry.GetGradientForOp(op, ["z_grad"])
    assert [(one.type, list(one.output)) for one in ops] == [("Scale", ["x_grad"])]
    assert gradients == ["x_grad", None]


def test_element_types_are_checked() -> None:
    feed(x=[1, 2])
    with pytest.raises(c10.EnforceNotMet, match=r"Input 0, blob 'x', has the type int64.*float32"):
        run("FnAxpy", ["x"], ["z"])


def test_a_function_returns_as_many_tensors_as_there_are_outputs() -> None:
    feed(x=np.arange(6.0).reshape(3, 2))
    run("FnParts", ["x"], ["a", "b"], sizes=[1, 2])
    assert workspace.FetchBlob("b").tolist() == [[2, 3], [4, 5]]
    with pytest.raises(c10.EnforceNotMet, match=r"returned 1 tensors.*2 outputs"):
        run("FnParts", ["x"], ["a", "b"], sizes=[3])


def test_views_of_inputs_are_copied() -> None:
    feed(x=np.arange(6.0).reshape(3, 2))
    run("FnParts", ["x"], ["a", "b"], sizes=[1, 2])
    run("FnSame", ["x"], ["v"])
    workspace.FetchTorch("x").zero_()
    assert workspace.FetchBlob("a").tolist() == [[0, 1]]
    assert workspace.FetchBlob("v").tolist() == [0, 1, 2, 3, 4, 5]


def test_a_view_in_place_changes_the_sizes_only() -> None:
    feed(x=np.arange(6.0).reshape(3, 2))
    address = workspace.FetchTorch("x").data_ptr()
    run("FnSame", ["x"], ["x"])
    assert workspace.FetchBlob("x").shape == (6,)
    assert workspace.FetchTorch("x").data_ptr() == address


def test_results_in_place_are_written_to_the_memory_of_the_input() -> None:
    tensor = torch.tensor([1.0, 2.0])
    workspace.FeedBlob("x", tensor)
    run("FnAxpy", ["x"], ["x"], a=1.0)
    assert tensor.tolist() == [2, 4]


def test_strings_are_rearranged() -> None:
    feed(x=np.array([b"a", b"b", b"c"], object))
    run("FnParts", ["x"], ["a", "b"], sizes=[1, 2])
    assert workspace.FetchBlob("b").tolist() == [b"b", b"c"]


def test_strings_are_returned_as_an_array() -> None:
    net = core.Net("text")
    net.Proto().op.extend([core.CreateOperator("FnText", ["x"], ["y"])])
    feed(x=np.float32([1, 2.5]))
    workspace.CreateNet(net)
    for _ in range(4):
        workspace.RunNet(net)
        assert workspace.FetchBlob("y").tolist() == [b"1", b"2.5"]
    feed(x=np.float32([3]))
    workspace.RunNet(net)
    assert workspace.FetchBlob("y").tolist() == [b"3"]


def test_several_inputs_of_one_type_whatever_it_is() -> None:
    feed(x=np.int16([1]), y=np.int16([2]), z=np.int64([3]), s=np.array([b"a"], object))
    run("FnJoined", ["x", "y"], ["xy"])
    assert workspace.FetchBlob("xy").tolist() == [1, 2]
    run("FnJoined", ["s", "s"], ["ss"])
    assert workspace.FetchBlob("ss").tolist() == [b"a", b"a"]
    for other in ("z", "s"):
        with pytest.raises(TypeError, match="takes int16 there"):
            run("FnJoined", ["x", other], ["xy"])
    with pytest.raises(TypeError, match="takes string there"):
        run("FnJoined", ["s", "z"], ["xy"])


def test_a_forced_output_in_place_is_written_there_from_the_first_run_on() -> None:
    rows = torch.zeros(2, 2)
    workspace.FeedBlob("x", rows)
    feed(row=np.float32([1, 2]))
    run("FnFirstRow", ["x", "row"], ["x"])
    assert rows.tolist() == [[1, 2], [0, 0]]


def test_a_failed_function_leaves_the_outputs() -> None:
    feed(x=np.float32([1, 2]), y=np.float32([1, 2, 3]), z=[7])
    with pytest.raises(RuntimeError, match="FnAxpy"):
        run("FnAxpy", ["x", "y"], ["z"])
    assert workspace.FetchBlob("z").tolist() == [7]


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x, **kw: x,
        "not a function",
        lambda x, *, a: x,
        lambda x, *, a=None: x,
    ],
)
def test_a_function_without_a_valid_signature_is_refused(wrong: Any) -> None:
    with pytest.raises(c10.EnforceNotMet):
        caffe2.operator("FnWrong")(wrong)
    assert not core.IsOperator("FnWrong")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inplace": [(5, 0)]}, r"has 1 inputs, so input 5"),
        ({"inplace": "0=0"}, "are not pairs"),
        ({"effects": "magic"}, r"\['magic'\] are not effects"),
        ({"gradient": "magic"}, "'magic' is not a gradient"),
    ],
)
def test_an_invalid_option_is_refused_by_name(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        caffe2.operator("FnWrong", **options)(lambda x: x)
    assert not core.IsOperator("FnWrong")


@caffe2.operator("FnNumPy")
def in_numpy(x: Tensor) -> Any:
    """What a function must not return: an array of numbers."""
    return x.numpy()


def test_arrays_of_numbers_are_no_results() -> None:
    feed(x=np.float32([1]), y=[7])
    with pytest.raises(TypeError, match=r"ndarray as output 0, which must be a torch\.Tensor"):
        run("FnNumPy", ["x"], ["y"])
    assert workspace.FetchBlob("y").tolist() == [7]


def test_annotations_may_be_left_out() -> None:
    caffe2.operator("FnPlain", types=None)(lambda x, *, a=2, b=(1.5,): x * a + sum(b))
    feed(x=np.float64([1, 2]))
    run("FnPlain", ["x"], ["z"], b=[1.0, 2.0])
    assert workspace.FetchBlob("z").tolist() == [5, 7]


def net_of(*operators: tuple[str, list[str], list[str]]) -> core.Net:
    net = core.Net("net")
    net.Proto().op.extend(core.CreateOperator(*operator) for operator in operators)
    workspace.CreateNet(net)
    return net


CHAIN = (
    ("Relu", ["x"], ["a"]),
    ("FC", ["a", "w", "b"], ["c"]),
    ("Tanh", ["c"], ["c"]),
    ("Softsign", ["c"], ["d"]),
)


def chain(x: Any, w: Any, b: Any) -> Any:
    c = np.tanh(np.maximum(x, 0) @ w.T + b)
    return c / (1 + np.abs(c))


def test_repeated_runs_follow_values_memory_sizes_and_types() -> None:
    random = np.random.default_rng(0)

    def values(rows: int) -> tuple[Any, ...]:
        return tuple(random.normal(size=s).astype("f") for s in ((rows, 3), (4, 3), (4,)))

    x, w, b = values(2)
    feed(x=x, w=w, b=b)
    net = net_of(*CHAIN)
    for rows in (2, 2, 2, 5, 5, 5, 2, 0, 3, 3, 3):
        x, w, b = values(rows)
        feed(x=x, w=w, b=b)
        workspace.RunNet(net)
        np.testing.assert_allclose(workspace.FetchBlob("d"), chain(x, w, b), rtol=1e-5, atol=1e-6)
    tensor = torch.randn(3, 3)
    for _ in range(3):  # other memory
        workspace.FeedBlob("x", tensor)
        workspace.RunNet(net)
        expected = chain(tensor.numpy(), w, b)
        np.testing.assert_allclose(workspace.FetchBlob("d"), expected, rtol=1e-5, atol=1e-6)
        tensor = tensor.clone().neg_()
    workspace.FeedBlob("x", np.ones((3, 3)))
    with pytest.raises(c10.EnforceNotMet, match=r"float64.*takes float32"):
        workspace.RunNet(net)


def test_outputs_stay_in_their_memory() -> None:
    feed(x=np.ones((2, 3), "f"), w=np.ones((4, 3), "f"), b=np.zeros(4, "f"))
    net = net_of(*CHAIN)
    workspace.RunNet(net)
    held = workspace.FetchTorch("d")
    feed(x=np.full((2, 3), -1, "f"))
    for _ in range(3):
        workspace.RunNet(net)
        assert workspace.FetchTorch("d").data_ptr() == held.data_ptr()
    assert held.abs().max() == 0


def test_a_tensor_that_was_resized_by_its_owner_is_noticed() -> None:
    feed(w=np.ones((4, 3), "f"), b=np.zeros(4, "f"))
    tensor = torch.ones(2, 3)
    workspace.FeedBlob("x", tensor)
    net = net_of(*CHAIN)
    for _ in range(3):
        workspace.RunNet(net)
    tensor.t_()
    workspace.RunNet(net)
    tensor.resize_(1000, 1000)
    with pytest.raises(BufferError):
        workspace.RunNet(net)


@pytest.mark.parametrize("setting", ["device", "inference", "autocast", "dtype", "no_grad"])
def test_settings_of_torch_change_nothing(setting: str) -> None:
    feed(x=np.ones((2, 3), "f"), w=np.ones((4, 3), "f"), b=np.zeros(4, "f"))
    net = net_of(*CHAIN)
    expected = chain(np.ones((2, 3)), np.ones((4, 3)), np.zeros(4))
    contexts: dict[str, Any] = {
        "device": torch.device("meta"),
        "inference": torch.inference_mode(),
        "autocast": torch.autocast("cpu", dtype=torch.bfloat16),
        "no_grad": torch.no_grad(),
    }
    before = torch.get_default_dtype()
    try:
        if setting == "dtype":
            torch.set_default_dtype(torch.float64)
            contexts["dtype"] = torch.enable_grad()
        for outside in (False, True, False):
            with torch.enable_grad() if outside else contexts[setting]:
                for _ in range(3):
                    workspace.RunNet(net)
            found = workspace.FetchBlob("d")
            assert found.dtype == np.float32
            np.testing.assert_allclose(found, expected, rtol=1e-6)
    finally:
        torch.set_default_dtype(before)
    assert bridge.to_torch(workspace.FetchTorch("d")).is_inference() is False


@caffe2.operator(
    "FnFirsts",
    types={"pairs": [c10.bool, (c10.float32, c10.string)]},
    inputs="2n",
    rearranges={1: 1},
)
def firsts(*pairs: Tensor) -> tuple[Tensor, Tensor]:
    """The first mask; the first element of each second input, and an empty one."""
    return pairs[0], torch.cat([*(x[:1] for x in pairs[1::2]), pairs[1].new_zeros(1)])


@caffe2.operator("FnLonger", types=c10.string, outputs=2)
def longer(x: Strings, *, suffix: bytes = b"") -> tuple[Strings, Tensor]:
    """Strings with a suffix, and their number of bytes."""
    found = [one + suffix for one in x.items]
    return Strings(x.shape, found), torch.tensor([len(one) for one in found]).view(x.shape)


def test_inputs_have_their_types_in_turn() -> None:
    mask = np.array([True, False])
    workspace.FeedBlob("m", mask)
    workspace.FeedBlob("f", np.array([1.5, 2], np.float32))
    workspace.FeedBlob("s", np.array([b"a", b"b"], object))
    for kind, expected in {"f": [1.5, 1.5, 0], "s": [b"a", b"a", b""]}.items():
        workspace.RunOperatorOnce(core.CreateOperator("FnFirsts", ["m", kind] * 2, ["n", "y"]))
        assert workspace.FetchBlob("y").tolist() == expected
        np.testing.assert_array_equal(workspace.FetchBlob("n"), mask)
    for inputs in (["m", "f", "m", "s"], ["f", "f"], ["m", "m"]):
        with pytest.raises(c10.EnforceNotMet, match="takes"):
            workspace.RunOperatorOnce(core.CreateOperator("FnFirsts", inputs, ["n", "y"]))


def test_a_function_takes_and_returns_strings() -> None:
    workspace.FeedBlob("s", np.array([[b"a"], [b"bc"]], object))
    operator = core.CreateOperator("FnLonger", ["s"], ["t", "n"], suffix=b"!")
    workspace.RunOperatorOnce(operator)
    assert workspace.FetchBlob("t").tolist() == [[b"a!"], [b"bc!"]]
    assert workspace.FetchBlob("n").tolist() == [[2], [3]]
