# SPDX-License-Identifier: Apache-2.0
"""InferShapesAndTypes: what is known without values, what is left out, what does not run."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes
from tests.helpers.workspaces import refused

pytestmark = pytest.mark.usefixtures("fresh_workspace")

FLOAT, INT32, STRING, BOOL, INT64 = 1, 2, 4, 5, 10


def inferred(
    *operators: Any, types: dict[str, int] | None = None, **sizes: list[int]
) -> dict[str, tuple[list[int], int]]:
    """What is inferred beyond the inputs."""
    net = core.Net("inferred")
    net.Proto().op.extend(operators)
    shapes, kinds = InferShapesAndTypes([net], sizes, blob_types=types)
    assert shapes.keys() == kinds.keys()
    return {name: (shapes[name], kinds[name]) for name in shapes if name not in sizes}


# What the real one gives for the same nets.
@pytest.mark.parametrize(
    ("operator", "types", "sizes", "expected"),
    [
        (
            core.CreateOperator("Conv", ["x", "w", "b"], "y", kernel=3, stride=2, pad=1),
            None,
            {"x": [2, 3, 9, 9], "w": [4, 3, 3, 3], "b": [4]},
            {"y": ([2, 4, 5, 5], FLOAT)},
        ),
        (
            core.CreateOperator("MaxPool", "x", "y", kernel=2, stride=2),
            None,
            {"x": [2, 3, 8, 8]},
            {"y": ([2, 3, 4, 4], FLOAT)},
        ),
        (
            core.CreateOperator("Gather", ["d", "i"], "y"),
            {"i": INT64},
            {"d": [10, 4], "i": [6, 2]},
            {"y": ([6, 2, 4], FLOAT)},
        ),
        (
            core.CreateOperator("SparseLengthsSum", ["d", "i", "l"], "y"),
            {"i": INT64, "l": INT32},
            {"d": [10, 4], "i": [6], "l": [3]},
            {"y": ([3, 4], FLOAT)},
        ),
        (
            core.CreateOperator("Concat", ["d", "e"], ["y", "split"], axis=1),
            None,
            {"d": [10, 4], "e": [10, 2]},
            {"y": ([10, 6], FLOAT), "split": ([2], INT32)},
        ),
        (
            core.CreateOperator("Reshape", "d", ["y", "old"], shape=[0, 2, -1]),
            None,
            {"d": [10, 4]},
            {"y": ([10, 2, 2], FLOAT), "old": ([2], INT64)},
        ),
        (
            core.CreateOperator("LT", ["a", "b"], "y"),
            None,
            {"a": [4], "b": [4]},
            {"y": ([4], BOOL)},
        ),
    ],
)
def test_sizes_and_types_are_inferred_as_the_operator_makes_them(
    operator: Any, types: dict[str, int] | None, sizes: dict[str, list[int]], expected: Any
) -> None:
    assert inferred(operator, types=types, **sizes) == expected


@pytest.mark.parametrize(
    ("operator", "types", "sizes", "known"),
    [
        (core.CreateOperator("Unique", "d", "u"), {"d": INT64}, {"d": [5]}, []),
        (
            core.CreateOperator("BooleanMask", ["d", "m"], "y"),
            {"m": BOOL},
            {"d": [5], "m": [5]},
            [],
        ),
        (
            core.CreateOperator("Reshape", ["d", "s"], ["y", "old"]),
            {"s": INT64},
            {"d": [4], "s": [2]},
            ["old"],
        ),
        (
            core.CreateOperator("Slice", ["d", "starts", "ends"], "y"),
            {"starts": INT64, "ends": INT64},
            {"d": [10, 4], "starts": [2], "ends": [2]},
            [],
        ),
        (core.CreateOperator("Expand", ["d", "s"], "y"), {"s": INT32}, {"d": [1, 4], "s": [2]}, []),
    ],
)
def test_outputs_that_depend_on_values_are_left_out(
    operator: Any, types: dict[str, int], sizes: dict[str, list[int]], known: list[str]
) -> None:
    assert sorted(inferred(operator, types=types, **sizes)) == known


def test_values_that_operators_make_alike_each_time_are_known() -> None:
    found = inferred(
        core.CreateOperator("GivenTensorInt64Fill", [], "s", shape=[2], values=[5, 2]),
        core.CreateOperator("ConstantFill", "s", "y", input_as_shape=1),
        core.CreateOperator("UniformFill", [], "r", shape=[3]),
        core.CreateOperator("GivenTensorStringFill", [], "t", shape=[1], values=["a"]),
    )
    assert found == {
        "s": ([2], INT64),
        "y": ([5, 2], FLOAT),
        "r": ([3], FLOAT),
        "t": ([1], STRING),
    }


def test_strings_of_unknown_values_keep_sizes_and_type() -> None:
    operator = core.CreateOperator("Copy", "x", "y")
    assert inferred(operator, types={"x": STRING}, x=[2, 3]) == {"y": ([2, 3], STRING)}


def test_an_unknown_operator_hides_the_blobs_made_of_its_output() -> None:
    found = inferred(
        core.CreateOperator("Relu", "x", "y"),
        core.CreateOperator("NoSuchOperator", "y", "z"),
        core.CreateOperator("Relu", "z", "q"),
        core.CreateOperator("Relu", "y", "p"),
        x=[2],
    )
    assert sorted(found) == ["p", "y"]


def test_a_blob_that_cannot_be_known_any_more_is_left_out() -> None:
    net = core.Net("again")
    net.Proto().op.extend([core.CreateOperator("Python", "x", "x", token="nobody")])
    assert InferShapesAndTypes([net], {"x": [2]}) == ({}, {})


def test_the_workspace_gives_sizes_and_is_not_touched() -> None:
    workspace.FeedBlob("x", np.ones((2, 3), np.float32))
    workspace.FeedBlob("text", "no tensor")
    net = core.Net("of_workspace")
    net.Softmax("x", "y")
    assert InferShapesAndTypes([net]) == ({"x": [2, 3], "y": [2, 3]}, {"x": FLOAT, "y": FLOAT})
    assert workspace.Blobs() == ["text", "x"]


def test_nothing_but_computation_runs(tmp_path: Path) -> None:
    path = tmp_path / "never"
    calls: list[int] = []
    save = core.CreateOperator("Save", "x", [], db=str(path), db_type="minidb", absolute_path=1)
    call = core.CreatePythonOperator(lambda i, o: calls.append(1), "x", "y")
    assert inferred(save, call, x=[2]) == {}
    assert not path.exists()
    assert not calls


def test_random_numbers_go_on_as_if_nothing_had_run() -> None:
    import torch

    torch.manual_seed(3)
    expected = torch.rand(2).tolist()
    torch.manual_seed(3)
    inferred(core.CreateOperator("UniformFill", [], "r", shape=[3]))
    assert torch.rand(2).tolist() == expected


def test_sizes_that_no_memory_holds_are_inferred() -> None:
    net = core.Net("inferred_huge")
    net.Relu("x", "y")
    net.FC(["y", "w", "b"], "z")
    net.LengthsSum(["y", "lengths"], "sums")
    many = 2**45
    given = {"x": [many, 3], "w": [5, 3], "b": [5], "lengths": [7]}
    sizes, _ = InferShapesAndTypes([net], given, blob_types={"lengths": INT32})
    found = {name: sizes.get(name) for name in ("y", "z", "sums")}
    assert found == {"y": [many, 3], "z": [many, 5], "sums": [7, 3]}


@pytest.mark.parametrize(
    ("arguments", "kind"),
    [
        ({"nets": 3}, TypeError),
        ({"nets": [3]}, TypeError),
        ({"nets": [], "blob_types": {"x": 1}}, AssertionError),
        ({"nets": [], "blob_dimensions": 3}, TypeError),
        ({"nets": [], "blob_dimensions": {}, "blob_types": 3}, TypeError),
        ({"nets": [], "blob_dimensions": {"x": 3}}, TypeError),
        ({"nets": [], "blob_dimensions": {"x": [-1]}}, ValueError),
        ({"nets": [], "blob_dimensions": {"x": [1]}, "blob_types": {"x": 99}}, ValueError),
    ],
)
def test_wrong_arguments_are_refused(arguments: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind) as raised:
        InferShapesAndTypes(**arguments)
    refused(raised.value, kind=kind)


@pytest.mark.parametrize(
    ("op_type", "sizes", "types", "arguments", "expected"),
    [
        ("GatherRanges", [[64, 2], [3, 2, 2]], "lf", {}, [([128], "l"), ([3], "f")]),
        ("IndexHash", [[7, 2]], "l", {"seed": 1, "modulo": 7}, [([7, 2], "l")]),
        ("Percentile", [[5, 3], [10, 3], [3]], "ffi", {}, [([5, 3], "f")]),
        ("BatchBucketOneHot", [[5, 3], [3], [9]], "fif", {}, [([5, 12], "f")]),
        ("SparseToDenseMask", [[5], [5, 4], [4], [2]], "iffi", {"mask": [1, 2, 3]},
         [([2, 3, 4], "f"), ([2, 3], "b")]),
        ("SparseToDenseMask", [[5], [5, 4], [4]], "iff", {"mask": [1, 2, 3]}, [([3, 4], "f")]),
        ("Unique", [[5]], "f", {}, [None, ([5], "i")]),
        ("TopK", [[2, 5]], "f", {"k": 3}, [([2, 3], "f"), ([2, 3], "i"), ([6], "i")]),
        ("ConstantFill", [], "", {"shape": [0, 3], "dtype": 12}, [([0, 3], "h")]),
        ("Split", [[10, 4], [2]], "fi", {"axis": 0}, [None, None]),
        ("Expand", [[10, 4], [2]], "fl", {}, [None]),
        ("Range", [[1]], "f", {}, [None]),
        ("Partition", [[5], [5, 2]], "if", {}, [None, None]),
    ],
)  # fmt: skip
def test_sizes_that_values_decide_follow_rules_or_are_left_out(
    op_type, sizes, types, arguments, expected
):
    numbers = {"f": 1, "i": 2, "l": 10, "b": 5, "h": 12}
    inputs = [f"i{k}" for k in range(len(sizes))]
    outputs = [f"o{k}" for k in range(len(expected))]
    net = core.Net("ruled")
    net.Proto().op.extend([core.CreateOperator(op_type, inputs, outputs, **arguments)])
    known = dict(zip(inputs, (numbers[one] for one in types), strict=True))
    shapes, kinds = InferShapesAndTypes([net], dict(zip(inputs, sizes, strict=True)), False, known)
    for name, one in zip(outputs, expected, strict=True):
        assert (shapes.get(name), kinds.get(name)) == (
            (None, None) if one is None else (one[0], numbers[one[1]])
        )


def test_an_output_that_cannot_be_known_has_the_sizes_of_the_workspace(fresh_workspace):
    workspace.FeedBlob("x", np.zeros((6,), np.float32))
    workspace.FeedBlob("y", np.zeros((3, 4), np.float32))
    net = core.Net("again")
    net.Proto().op.extend([core.CreateOperator("Python", "x", "y", token="nobody")])
    assert InferShapesAndTypes([net])[0] == {"x": [6], "y": [3, 4]}
