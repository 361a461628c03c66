# SPDX-License-Identifier: Apache-2.0
"""Errors that are of the kind of what caused them, a script's own exceptions among them."""

import pickle
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")


class NoData(Exception):
    """A script's own exception, which cannot be made of one argument."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(f"{file}:{line}")
        self.line = line


class Stopped(RuntimeError):
    """Another one, of the same base as EnforceNotMet."""


def failing(error: Exception) -> Any:
    def fail(inputs: Any, outputs: Any) -> None:
        raise error

    net = core.Net("failing")
    net.Python(fail)([], [])
    return net


@pytest.mark.parametrize(
    "error", [NoData("a", 3), Stopped("s"), ZeroDivisionError("z"), ValueError("v")]
)
def test_a_script_catches_its_own_exceptions_around_a_net(error: Exception) -> None:
    with pytest.raises(type(error), match="position 0 of net 'failing") as raised:
        workspace.RunNetOnce(failing(error))
    assert isinstance(raised.value, EnforceNotMet)
    assert raised.value.__cause__ is error
    assert str(error) in str(raised.value)
    copy = pickle.loads(pickle.dumps(raised.value))
    assert isinstance(copy, EnforceNotMet)
    assert str(copy) == str(raised.value)


def test_a_scripts_exception_keeps_its_attributes() -> None:
    with pytest.raises(NoData) as raised:
        workspace.RunOperatorOnce(failing(NoData("a", 3)).Proto().op[0])
    assert raised.value.line == 3


@pytest.mark.parametrize("error", [StopIteration(), OSError(2, "no such file")])
def test_an_exception_that_cannot_be_a_base_is_the_cause(error: Exception) -> None:
    with pytest.raises(EnforceNotMet) as raised:
        workspace.RunNetOnce(failing(error))
    assert not isinstance(raised.value, type(error))
    assert raised.value.__cause__ is error


class Full(RuntimeError):
    """What torch.OutOfMemoryError is."""


def test_where_torch_lacks_memory_it_is_a_memory_error() -> None:
    fill = core.CreateOperator("ConstantFill", [], ["y"], shape=[1 << 50], value=1.0)
    net = core.Net("net")
    net.Proto().op.append(fill)
    for run in (
        lambda: workspace.RunOperatorOnce(fill),
        lambda: workspace.RunNetOnce(net),
        lambda: workspace.RunNetOnce(failing(RuntimeError("Could not allocate list object!"))),
        lambda: workspace.RunNetOnce(failing(Full("CUDA out of memory. Tried"))),
    ):
        with pytest.raises(MemoryError) as raised:
            run()
        for error in (raised.value, pickle.loads(pickle.dumps(raised.value))):
            assert isinstance(error, EnforceNotMet)
            assert isinstance(error, MemoryError)
    assert isinstance(raised.value, Full)
