# SPDX-License-Identifier: Apache-2.0
"""What a user reads who made a common mistake: what was wrong, and what to do instead.

Each part tests its own errors where it is tested. These are the first mistakes of a new user, one
table for the whole package, so that their wording can be read at one place.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import bridge
from bridge import at, c10, caffe2
from bridge.caffe2 import core, workspace
from tests.helpers.operators import run_operator


def untyped() -> caffe2.Tensor:
    return caffe2.Tensor([2, 3], "cpu")


def created() -> str:
    workspace.CreateBlob("made")
    return "made"


def run(op_type: str, inputs: list[str], outputs: list[str]) -> None:
    workspace.FeedBlob("x", np.zeros((2, 3), np.float32))
    run_operator(op_type, inputs, outputs)


# What a user calls, the error, and what it has to say.
# fmt: off
MISTAKES: dict[str, tuple[Callable[[], Any], type[Exception], tuple[str, ...]]] = {
    "from_dlpack of a list": (lambda: bridge.from_dlpack([1, 2]), TypeError,
        ("builtins.list", "bridge.asarray")),
    "from_dlpack of strings": (lambda: bridge.from_dlpack(np.array(["a"])), BufferError,
        ("<U1", "FeedBlob")),
    "from_dlpack of what autograd watches": (
        lambda: bridge.from_dlpack(torch.ones(2, requires_grad=True)),
        BufferError,
        ("requires grad", "detach()"),
    ),
    "to_torch of read-only memory": (lambda: bridge.to_torch(b"abc", copy=False), BufferError,
        ("read-only", "copy=None", "writable=True")),
    "convert to what is unknown": (lambda: bridge.convert(b"abc", "panda"), ValueError,
        ("'panda'", "torch", "pandas")),
    "asarray of numbers and strings": (lambda: bridge.asarray([1, "a"]), TypeError,
        ("<U", "this list", "numbers only", "or strings only")),
    "asarray of a huge number": (lambda: bridge.asarray(10**30), TypeError, ("64 bits",)),
    "asarray of text as numbers": (lambda: bridge.asarray(["a"], dtype="float32"), ValueError,
        ("could not convert string to float: 'a'",)),
    "a misspelt type": (lambda: at.zeros(2, dtype="floot32"), c10.EnforceNotMet,
        ("'floot32'", "'float32'")),
    "a misspelt device": (lambda: at.zeros(2, device="gppu"), c10.EnforceNotMet,
        ("'gppu'", "cpu, cuda", "'cuda:1'")),
    "at.Tensor of a torch tensor": (lambda: at.Tensor(torch.zeros(2)), TypeError,
        ("bridge.from_dlpack",)),
    "caffe2.Tensor of an array": (lambda: caffe2.Tensor(np.zeros((2, 2)).T), c10.EnforceNotMet,
        ("strides [1, 2]", "contiguous")),
    "a text for a number": (
        lambda: at.arange("bytes"),
        c10.EnforceNotMet,
        ("[enforce fail at at.arange] torch has no element type string.",),
    ),
    "copy_ of text": (lambda: at.zeros(2).copy_("ab"), TypeError, ("str", "a number", "a tensor")),
    "copy_ of other sizes": (lambda: at.zeros(2, 3).copy_(at.zeros(4)), ValueError,
        ("[4]", "[2, 3]", "the same, or one")),
    "two numbers into the place of one": (lambda: at.zeros(2).__setitem__(0, [1, 2]), ValueError,
        ("[2]", "[]")),
    "slice without a step": (lambda: at.zeros(2).slice(0, 0, 2, 0), c10.EnforceNotMet,
        ("positive, not 0.",)),
    "slice backwards": (lambda: at.zeros(2).slice(0, 0, 2, -1), c10.EnforceNotMet, ("x[::-1]",)),
    "view across strides": (lambda: at.zeros(2, 3).t().view(6), c10.EnforceNotMet,
        ("[1, 3]", "reshape()")),
    "the truth of several": (lambda: bool(at.zeros(2)), ValueError,
        ("2 elements", "any() or all()")),
    "numpy() before a type": (lambda: untyped().numpy(), BufferError,
        ("no element type yet", "mutable_data(T)")),
    "memoryview before a type": (lambda: memoryview(untyped()), BufferError,
        ("no element type yet", "mutable_data(T)")),
    "data of another type": (lambda: caffe2.Tensor([1], [1.5]).data("int32"), c10.EnforceNotMet,
        ("float64", "int32", "mutable_data(T)")),
    "strings and numbers in one tensor": (lambda: caffe2.Tensor([2], ["a", 1]), TypeError,
        ("at caffe2.Tensor]", "int", "string")),
    "a copy that does not say which": (lambda: caffe2.Tensor(untyped()), TypeError,
        ("UnsafeSharedInstance()", "Alias()", "Clone()")),
    "fetch an unknown blob": (lambda: workspace.FetchBlob("nowhere"), KeyError,
        ("'nowhere'", "FeedBlob")),
    "fetch an empty blob": (lambda: workspace.FetchBlob(created()), c10.EnforceNotMet,
        ("'made' holds nothing (it was", "), which cannot be fetched", "Feed it")),
    "feed what is no value": (lambda: workspace.FeedBlob("x", {}), TypeError,
        ("builtins.dict", "bridge.asarray")),
    "deserialize nothing": (lambda: workspace.DeserializeBlob("x", b""), c10.EnforceNotMet,
        ("b''", "tensors, strings, Int8 tensors, counters")),
    "an unknown operator": (lambda: run("Rellu", ["x"], ["y"]), KeyError, ("'Rellu'", "'Relu'")),
    "an unknown operator of a net": (lambda: core.Net("net").Rellu("x", "y"), AttributeError,
        ("Rellu", "Did you mean: [Relu")),
    "an operator like no other": (lambda: core.Net("net").Qqqqq("x", "y"), AttributeError,
        ("Qqqqq", "RegisteredOperators()")),
    "too many inputs": (lambda: run("Relu", ["x", "x"], ["y"]), c10.EnforceNotMet,
        ("Relu is given 2 inputs; it takes 1 input and 1 output.",)),
    "any number of inputs": (lambda: run("Sum", [], ["y"]), c10.EnforceNotMet,
        ("Sum is given 0 inputs; it takes 1 or more inputs and 1 output.",)),
    "in place where it cannot be": (lambda: run("MatMul", ["x", "x"], ["x"]), c10.EnforceNotMet,
        ("MatMul cannot work in place, with input 0 as output 0",)),
    "an argument of no kind": (lambda: core.CreateOperator("Relu", "x", "y", alpha=object()),
        c10.EnforceNotMet, ("'alpha' is of type object", "numbers, strings")),
    "run what is no operator": (lambda: workspace.RunOperatorOnce(3), c10.EnforceNotMet,
        ("an OperatorDef", "not int")),
    "run a net as an operator": (lambda: workspace.RunOperatorOnce(core.Net("net").Proto()),
        c10.EnforceNotMet, ("takes an OperatorDef, not a NetDef",)),
    "an operator for no device": (
        lambda: caffe2.register_operator("OfNoDevice", devices=("tpuu",)),
        c10.EnforceNotMet,
        ("'tpuu'", "'cpu', 'cuda'"),
    ),
}
# fmt: on


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize(("call", "error", "words"), MISTAKES.values(), ids=MISTAKES)
def test_an_error_explains_the_mistake(
    call: Callable[[], Any], error: type[Exception], words: tuple[str, ...]
) -> None:
    with pytest.raises(error) as caught:
        call()
    for word in words:
        assert word in str(caught.value)
