# SPDX-License-Identifier: Apache-2.0
"""to_module: values and gradients of nets as modules, sharing, copies, export and compilation."""

from __future__ import annotations

import copy
import io
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace
from tests.helpers.torch_release import error_of_export

pytestmark = pytest.mark.usefixtures("fresh_workspace")

X = np.random.default_rng(0).normal(size=(3, 8)).astype(np.float32)


def perceptron() -> core.Net:
    """Feed the blobs of a small net that overwrites one of them; return the net."""
    random = np.random.default_rng(1)
    for name, sizes in {"w.1": (16, 8), "b/1": (16,), "training": (4, 16), "0": (4,)}.items():
        workspace.FeedBlob(name, random.normal(size=sizes).astype(np.float32))
    net = core.Net("perceptron")
    net.FC(["x", "w.1", "b/1"], "h")
    net.Relu("h", "h")
    net.FC(["h", "training", "0"], "y")
    net.Tanh("y", "0")  # overwrites a parameter
    net.Proto().external_output.extend(["y", "0"])
    return net


def affine() -> core.Net:
    for name, sizes in {"w": (16, 8), "b": (16,)}.items():
        workspace.FeedBlob(name, np.random.default_rng(1).normal(size=sizes).astype(np.float32))
    net = core.Net("affine")
    net.FC(["x", "w", "b"], "h")
    net.Relu("h", "y")
    return net


def expected(net: core.Net) -> list[Any]:
    zero = workspace.FetchBlob("0")
    workspace.FeedBlob("x", X)
    workspace.RunNetOnce(net)
    found = [workspace.FetchBlob(name) for name in ("y", "0")]
    workspace.FeedBlob("0", zero)
    return found


def test_a_module_has_values_names_and_memory_of_the_net() -> None:
    net = perceptron()
    module = caffe2.to_module(net, inputs=["x"])
    assert (module.input_names, module.output_names) == (("x",), ("y", "0"))
    assert set(module.state_dict()) == {"w_1", "b/1", "training", "0"}
    for name in ("w.1", "b/1", "training", "0"):
        assert module.get_blob(name).data_ptr() == workspace.FetchTorch(name).data_ptr()
    before = workspace.FetchBlob("0")
    found = module(X)
    assert workspace.FetchBlob("0").tolist() == before.tolist()
    for one, other in zip(found, expected(net), strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other, rtol=1e-6)


def test_gradients_equal_the_gradients_of_the_net() -> None:
    net = perceptron()
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"], trainable=True)
    module(X).sum().backward()
    training = core.Net("training_net")
    training.Proto().op.extend(net.Proto().op[:3])
    training.Proto().external_input.extend(["x", "w.1", "b/1", "training", "0"])
    training.ConstantFill("y", "y_seed", value=1.0)
    gradients = training.AddGradientOperators({"y": "y_seed"})
    workspace.FeedBlob("x", X)
    workspace.RunNetOnce(training)
    for name in ("w.1", "b/1", "training", "0"):
        found = module.get_blob(name).grad
        np.testing.assert_allclose(
            found.numpy(), workspace.FetchBlob(str(gradients[name])), rtol=1e-5, atol=1e-6
        )


def test_training_is_seen_by_the_net_and_the_other_way_round() -> None:
    net = perceptron()
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"], trainable=True)
    with torch.no_grad():
        module.get_blob("w.1").mul_(2)
    np.testing.assert_allclose(module(X).detach().numpy(), expected(net)[0], rtol=1e-6)
    workspace.FetchTorch("w.1").add_(1)
    np.testing.assert_allclose(module(X).detach().numpy(), expected(net)[0], rtol=1e-6)


@pytest.mark.parametrize("how", ["deepcopy", "pickle", "save"])
def test_copies_compute_the_same_on_memory_of_their_own(how: str) -> None:
    module = caffe2.to_module(perceptron(), inputs=["x"])
    if how == "deepcopy":
        other = copy.deepcopy(module)
    elif how == "pickle":
        other = pickle.loads(pickle.dumps(module))
    else:
        buffer = io.BytesIO()
        torch.save(module, buffer)
        buffer.seek(0)
        other = torch.load(buffer, weights_only=False)
    assert torch.equal(other(X)[0], module(X)[0])
    assert other.get_blob("w.1").data_ptr() != module.get_blob("w.1").data_ptr()
    assert other.input_names == ("x",)


def test_a_module_is_converted_to_another_type() -> None:
    module = caffe2.to_module(perceptron(), inputs=["x"])
    module.double()
    assert module(X.astype(np.float64))[0].dtype == torch.float64


def test_a_module_is_exported_and_compiled() -> None:
    module = caffe2.to_module(affine())
    x = torch.from_numpy(X)
    batch = torch.export.Dim("batch")
    program = torch.export.export(module, (x,), dynamic_shapes=({0: batch},))
    torch.testing.assert_close(program.module()(x), module(x))
    assert program.module()(torch.zeros(9, 8)).shape == (9, 16)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x), module(x))


def test_many_modules_are_compiled_in_one_process() -> None:
    net = affine()
    for scale in range(1, 12):
        net.Proto().op[1].type = "Relu" if scale % 2 else "Tanh"
        module = caffe2.to_module(net)
        compiled = torch.compile(module, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(torch.from_numpy(X)), module(X))


def test_a_module_is_made_from_files_with_an_init_net(tmp_path: Path) -> None:
    init = core.Net("init")
    init.GivenTensorFill([], "w", shape=[2, 8], values=np.arange(16.0) / 16)
    init.ConstantFill([], "b", shape=[2], value=1.0)
    net = core.Net("net")
    net.FC(["x", "w", "b"], "y")
    net.Proto().external_output.append("y")
    (tmp_path / "init_net.pb").write_bytes(init.Proto().SerializeToString())
    (tmp_path / "net.pbtxt").write_text(str(net.Proto()))
    module = caffe2.to_module(tmp_path / "net.pbtxt", str(tmp_path / "init_net.pb"))
    assert module.input_names == ("x",)
    assert not workspace.HasBlob("w")
    weights = np.arange(16.0).reshape(2, 8) / 16
    np.testing.assert_allclose(module(x=X).detach().numpy(), X @ weights.T + 1, rtol=1e-5)


@pytest.mark.parametrize("word", [b"extern", b"second", b"affine", b"FC", b"seen"])
def test_a_net_with_a_name_that_is_not_utf8_is_refused(word: bytes, tmp_path: Path) -> None:
    net = affine()
    net.Proto().external_input.append("extern")
    net.Proto().external_output.extend(["y", "second"])
    net.Copy("extern", "second", name="seen")
    data = net.Proto().SerializeToString().replace(word, b"\xff" * len(word))
    (tmp_path / "net.pb").write_bytes(data)
    for source in (data, tmp_path / "net.pb"):
        with pytest.raises(c10.EnforceNotMet, match="not UTF-8"):
            caffe2.to_module(source)


def test_operators_with_state_run_and_are_named_by_export() -> None:
    net = core.Net("counting")
    net.Tanh("x", "y")
    net.Print("y", [])
    net.Relu("y", "z")
    workspace.FeedBlob("x", X)
    module = caffe2.to_module(net, inputs=["x"], outputs=["z"])
    assert module(X).shape == X.shape
    with pytest.raises(Exception, match=r"'Print' at position 1"):
        torch.export.export(module, (torch.from_numpy(X),))


def test_nets_inside_operators_use_the_blobs_around_them() -> None:
    workspace.FeedBlob("w", np.full((1, 8), 2, np.float32))
    workspace.FeedBlob("b", np.zeros(1, np.float32))
    branch = core.Net("branch")
    branch.FC(["h", "w", "b"], "y")
    net = core.Net("choosing")
    net.Tanh("x", "h")
    net.If("chosen", [], then_net=branch.Proto())
    net.Proto().external_output.extend(["h", "y"])
    module = caffe2.to_module(net, inputs=["x", "chosen"])
    y = module(X, torch.tensor(True))[1]
    np.testing.assert_allclose(y.numpy(), 2 * np.tanh(X).sum(1, keepdims=True), rtol=1e-5)
    assert set(module.state_dict()) == {"w", "b"}
    assert module(X, torch.tensor(False))[1] is None
    with pytest.raises(Exception, match=r"'If' at position 1"):
        torch.export.export(module, (torch.from_numpy(X), torch.tensor(True)))


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"outputs": ["nothing"]}, "has no blob 'nothing'"),
        ({"inputs": ["nothing"]}, "does not read 'nothing'"),
        ({"inputs": "x"}, "list of names"),
        ({"inputs": []}, "no blob 'x'"),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], text: str) -> None:
    net = perceptron()
    with pytest.raises(c10.EnforceNotMet, match=text):
        caffe2.to_module(net, **arguments)


def test_wrong_calls_are_refused() -> None:
    module = caffe2.to_module(perceptron(), inputs=["x"])
    for call in (
        lambda: module(),
        lambda: module(X, X),
        lambda: module(X, x=X),
        lambda: module(z=X),
        lambda: module(X[:, :3]),
    ):
        with pytest.raises(c10.EnforceNotMet):
            call()
    with pytest.raises(c10.EnforceNotMet, match="cannot be read"):
        caffe2.to_module("absent.pb")


def test_functions_of_strings_are_computed() -> None:
    workspace.FeedBlob("text", np.array([b"abc", b"b", b"abcd"], object))
    net = core.Net("strings")
    net.StringPrefix("text", "prefixes", length=2)
    net.LengthsTile(["prefixes", "lengths"], "tiled")
    net.StringEquals("tiled", "y", text="ab")
    net.Proto().external_output.append("y")
    module = caffe2.to_module(net, inputs=["lengths"])
    found = module(torch.tensor([2, 1, 1], dtype=torch.int32))
    assert found.tolist() == [True, True, False, True]


def test_aliases_and_barriers_are_traced() -> None:
    net = core.Net("aliases")
    net.Alias("x", "same")
    net.Scale("same", "twice", scale=2.0)
    net.Copy("x", "other")
    net.Proto().op.extend(
        [
            core.CreateOperator("DataCouple", ["twice", "other"], ["twice", "other"]),
            core.CreateOperator("AsyncNetBarrier", ["twice"], ["twice"]),
        ]
    )
    net.Add(["twice", "other"], "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    x = torch.tensor([1.0, -2.0])
    for mode in (torch.no_grad, torch.enable_grad, torch.no_grad):
        with mode():
            assert module(x).tolist() == [3.0, -6.0]
    assert torch.export.export(module, (x,)).module()(x).tolist() == [3.0, -6.0]
    assert x.tolist() == [1.0, -2.0]


def test_an_alias_that_is_overwritten_is_not_traced() -> None:
    net = core.Net("aliases")
    net.Alias("x", "same")
    net.Scale("same", "same", scale=2.0)  # and with it x
    module = caffe2.to_module(net, inputs=["x"], outputs=["same"])
    with pytest.raises(error_of_export(), match=r"'Alias' at position 0.*overwritten later"):
        torch.export.export(module, (torch.ones(2),))


@pytest.mark.parametrize("outputs", [["x"], ["same", "x"], ["y"]])
def test_a_blob_that_its_alias_has_overwritten_is_refused(outputs: list[str]) -> None:
    net = core.Net("aliases")
    net.Alias("x", "same")
    net.Scale("same", "same", scale=2.0)
    net.Copy("x", "y")
    with pytest.raises(c10.EnforceNotMet, match=r"share memory, and 'x' is overwritten.*Use Copy"):
        caffe2.to_module(net, inputs=["x"], outputs=outputs)
    net.Proto().op[0].type = "Copy"
    assert caffe2.to_module(net, inputs=["x"], outputs=["x"])(torch.ones(1)).tolist() == [1]


@pytest.mark.parametrize("written", ["z", "y", "x"])
def test_aliases_of_aliases_share_memory_too(written: str) -> None:
    net = core.Net("aliases")
    net.Alias("x", "y")
    net.Alias("y", "z")
    net.Scale(written, written, scale=2.0)
    for name in {"x", "y", "z"} - {written}:
        with pytest.raises(c10.EnforceNotMet, match=f"memory, and '{name}' is overwritten"):
            caffe2.to_module(net, inputs=["x"], outputs=[name])
    module = caffe2.to_module(net, inputs=["x"], outputs=[written])
    assert module(torch.ones(1)).tolist() == [2]
    with pytest.raises(error_of_export(), match=r"'Alias' at position \d.*overwritten later"):
        torch.export.export(module, (torch.ones(2),))


def test_a_name_that_is_aliased_anew_has_left_the_memory() -> None:
    net = core.Net("aliases")
    net.Alias("x", "y")
    net.Copy("x", "w")
    net.Alias("w", "y")
    net.Scale("y", "y", scale=2.0)
    found = caffe2.to_module(net, inputs=["x"], outputs=["x", "y"])(torch.ones(1))
    assert [one.tolist() for one in found] == [[1], [2]]


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors:UserWarning")
def test_a_module_takes_nested_tensors() -> None:
    net = core.Net("net")
    net.Relu("x", "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    x = torch.nested.nested_tensor([torch.tensor([-1.0, 2]), torch.tensor([3.0])])
    for _ in range(3):
        assert [one.tolist() for one in module(x).unbind()] == [[0, 2], [3]]
        assert module(torch.tensor([-1.0])).tolist() == [0]


def test_operators_that_read_the_old_value_of_an_output_get_it() -> None:
    net = core.Net("sums")
    net.Accumulate("x", "total")
    net.Accumulate("x", "total", gamma=2.0)
    module = caffe2.to_module(net, inputs=["x"], outputs=["total"])
    x = torch.tensor([1.0, 3.0])
    for _ in range(3):  # each call begins anew
        assert module(x).tolist() == [3.0, 9.0]
    workspace.FeedBlob("total", np.float32([10, 20]))
    module = caffe2.to_module(net, inputs=["x"], outputs=["total"])
    for _ in range(3):
        assert module(x).tolist() == [23.0, 49.0]
    assert workspace.FetchBlob("total").tolist() == [10.0, 20.0]


@pytest.mark.parametrize("dtype", [torch.float16, torch.uint8, torch.bool, torch.float32])
def test_types_that_an_operator_does_not_take_are_refused(dtype: torch.dtype) -> None:
    """Kernels would read what is not there."""
    net = core.Net("lookup")
    net.SparseLengthsSum(["table", "rows", "lengths"], "y")
    module = caffe2.to_module(net, inputs=["table", "rows", "lengths"], outputs=["y"])
    table, rows = torch.ones(4, 2), torch.tensor([0, 3, 3])
    lengths = torch.tensor([1, 2], dtype=torch.int32)
    text = f"Input 1 has the type {str(dtype)[6:]}; SparseLengthsSum takes int32, int64"
    for _ in range(3):
        with pytest.raises(c10.EnforceNotMet, match=text):
            module(table, rows.to(dtype), lengths)
        assert module(table, rows, lengths).tolist() == [[1, 1], [2, 2]]
        assert module(table.double(), rows, lengths).tolist() == [[1, 1], [2, 2]]
    with pytest.raises(TypeError, match=text):
        torch.ops._caffe2.SparseLengthsSum(table, rows.to(dtype), lengths)


def test_refusal_says_that_modules_take_all_floating_point_types() -> None:
    net = core.Net("positive")
    net.Relu("x", "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y"])
    assert module(torch.tensor([-1.0, 2.0], dtype=torch.float64)).tolist() == [0, 2]
    with pytest.raises(TypeError, match="int64; Relu takes floating-point types there"):
        module(torch.tensor([-1, 2]))


def test_int8_operators_run_again_on_other_inputs_in_several_threads() -> None:
    init, net = core.Net("init"), core.Net("net")
    for name, scale in (("a", 0.5), ("b", 0.25)):
        octets = bytes(range(12)).decode("latin-1")
        init.Int8GivenTensorFill([], name, values=octets, shape=[3, 4], Y_scale=scale)
    workspace.RunNetOnce(init)
    net.Int8Quantize("x", "q", Y_scale=0.5, Y_zero_point=0)
    net.Int8Add(["q", "a"], "sum", Y_scale=0.5, Y_zero_point=0)
    net.Int8Relu("sum", "sum", Y_scale=0.5, Y_zero_point=0)
    module = caffe2.to_module(net, inputs=["x"], outputs=["q", "sum"])
    filled = 0.5 * torch.arange(12.0).view(3, 4)

    def check(k: int) -> None:
        for i in range(k, k + 20):
            q, total = module(torch.full((3, 4), i / 2))
            given.append((i, q, total))
            assert_values(q, torch.full((3, 4), i / 2))
            assert_values(total, filled + i / 2)

    def assert_values(blob: Any, expected: torch.Tensor) -> None:
        data, scale, zero_point = blob.fetch()
        torch.testing.assert_close(
            torch.from_numpy(scale * (data - float(zero_point))).float(), expected
        )

    given: list[Any] = []
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(check, range(0, 80, 20)))
    for i, q, total in given:  # later calls have not changed them
        assert_values(q, torch.full((3, 4), i / 2))
        assert_values(total, filled + i / 2)


def test_int8_operators_in_place_do_not_write_blobs() -> None:
    made = {"values": "\x01\x05\x09", "shape": [3], "Y_scale": 0.5, "Y_zero_point": 4}
    workspace.RunOperatorOnce(core.CreateOperator("Int8GivenTensorFill", [], "a", **made))
    net = core.Net("net")
    net.Int8Relu("a", "a", Y_scale=0.5, Y_zero_point=4)
    module = caffe2.to_module(net, inputs=[], outputs=["a"])
    for _ in range(3):
        assert module().fetch().data.tolist() == [4, 5, 9]
        assert workspace.FetchInt8Blob("a").data.tolist() == [1, 5, 9]


@pytest.mark.parametrize("trainable", [False, True])
@pytest.mark.parametrize("mode", [torch.enable_grad, torch.no_grad, torch.inference_mode])
@pytest.mark.parametrize(
    ("operator", "arguments"),
    [
        ("Reshape", {"shape": [3, 2]}),
        ("Slice", {"starts": [0, 0], "ends": [1, -1]}),
        ("Split", {"axis": 0}),
        ("Copy", {}),
        ("Alias", {}),
        ("StopGradient", {}),
    ],
)
def test_outputs_have_memory_of_their_own_in_every_call(
    operator: str, arguments: dict[str, Any], mode: Any, trainable: bool
) -> None:
    workspace.FeedBlob("w", np.ones((2, 3), np.float32))
    net = core.Net("views")
    net.Relu("x", "h")
    names = ["h"]
    for name in ("x", "h", "w"):
        outputs = [f"{name}_0", f"{name}_1"][: 2 if operator in ("Reshape", "Split") else 1]
        getattr(net, operator)(name, outputs, **arguments)
        names += outputs if operator == "Split" else outputs[:1]
    module = caffe2.to_module(net, inputs=["x"], outputs=[*names, "w"], trainable=trainable)
    x = torch.rand(2, 3, requires_grad=trainable)
    for _ in range(4):
        with mode():
            tensors = [x, module.get_blob("w"), *module(x)]
        assert len({one.untyped_storage().data_ptr() for one in tensors}) == len(tensors)


def test_an_output_that_is_an_input_by_its_name_has_its_memory() -> None:
    net = core.Net("passed on")
    net.Relu("x", "y")
    module = caffe2.to_module(net, inputs=["x"], outputs=["x", "y"])
    x = torch.rand(2)
    for _ in range(4):
        assert module(x)[0].data_ptr() == x.data_ptr()


@pytest.mark.parametrize("count", [0, 3])
def test_a_module_of_float64_looks_up_rows_of_float64(count: int) -> None:
    net = core.Net("rows")
    net.SparseLengthsSum(["w", "indices", "lengths"], "sum")
    net.FC(["sum", "v", "b"], "y")
    weights = {"w": (4, 3), "v": (2, 3), "b": (2,)}
    for name, sizes in weights.items():
        workspace.FeedBlob(name, np.ones(sizes, np.float32))
    module = caffe2.to_module(net, inputs=["indices", "lengths"], outputs=["y"]).double()
    y = module(torch.arange(count), torch.tensor([count], dtype=torch.int32))
    assert y.dtype == torch.float64
    assert y.tolist() == [[3 * count + 1] * 2]


def test_a_compiled_module_returns_no_memory_of_its_parameters() -> None:
    workspace.FeedBlob("w", np.ones((2, 3), np.float32))
    net = core.Net("stopped")
    net.StopGradient("w", "y")
    net.Reshape("y", ["z", "_"], shape=[3, 2])
    net.Add(["x", "w"], "sum")
    module = caffe2.to_module(net, inputs=["x"], outputs=["y", "z", "sum"], trainable=True)
    compiled = torch.compile(module, backend="eager")
    tensors = [module.get_blob("w"), *compiled(torch.ones(2, 3))]
    assert len({one.untyped_storage().data_ptr() for one in tensors}) == len(tensors)


def test_an_operator_that_is_refused_is_refused_as_a_module() -> None:
    net = core.Net("nameless")
    net.AliasWithName("x", "y")
    with pytest.raises(c10.EnforceNotMet, match="The argument name is missing"):
        caffe2.to_module(net, inputs=["x"])
