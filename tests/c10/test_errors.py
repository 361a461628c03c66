# SPDX-License-Identifier: Apache-2.0
"""`c10.EnforceNotMet`: a RuntimeError that says what failed, why, and in which method."""

import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2


def read_only() -> at.Tensor:
    """A tensor over memory that must not be written."""
    array = np.arange(6, dtype=np.float32).reshape(2, 3)
    array.flags.writeable = False
    return bridge.from_dlpack(array)


FAILURES: dict[str, Callable[[], object]] = {
    "Resize": lambda: caffe2.Tensor((2, 3), "cpu").Resize(-1, 2),
    "Reshape": lambda: caffe2.Tensor((2, 3), "cpu").Reshape((4, 4)),
    "data": lambda: caffe2.Tensor((2, 3), "cpu").data("float32"),
    "raw_data": lambda: caffe2.Tensor((2, 3), "cpu").raw_data(),
    "ShareData": lambda: caffe2.Tensor((2, 3), "cpu").ShareData(caffe2.Tensor((7,), [1.0] * 7)),
    "fill_": lambda: read_only().fill_(1.0),
    "zero_": lambda: read_only().zero_(),
    "copy_": lambda: read_only().copy_(at.zeros((2, 3))),
}
every_failure = pytest.mark.parametrize(("caller", "fail"), FAILURES.items(), ids=FAILURES)


def caught(fail: Callable[[], object]) -> c10.EnforceNotMet:
    """The error that `fail` raises."""
    with pytest.raises(c10.EnforceNotMet) as information:
        fail()
    return information.value


def test_it_is_a_runtime_error() -> None:
    assert issubclass(c10.EnforceNotMet, RuntimeError)


@every_failure
def test_it_carries_condition_message_and_caller(caller: str, fail: Callable[[], object]) -> None:
    error = caught(fail)
    assert isinstance(error.condition, str)
    assert error.condition
    assert isinstance(error.message, str)
    assert error.message
    assert caller in error.caller


@every_failure
def test_its_text_tells_all_three(caller: str, fail: Callable[[], object]) -> None:
    error = caught(fail)
    text = str(error)
    assert error.condition in text
    assert error.message in text
    assert caller in text


def test_the_message_has_the_values_that_were_met() -> None:
    text = str(caught(lambda: caffe2.Tensor((2, 3), "cpu").Reshape((5, 7))))
    assert "6" in text
    assert "35" in text or ("5" in text and "7" in text)


def test_the_boundary_to_caffe2_names_its_constructor() -> None:
    error = caught(lambda: caffe2.Tensor(at.zeros((2, 3)).t()))
    assert "contiguous" in str(error)
    assert "Tensor" in error.caller


def test_it_can_be_pickled() -> None:
    error = caught(FAILURES["Reshape"])
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error)
    assert str(again) == str(error)
    assert (again.condition, again.message, again.caller) == (
        error.condition,
        error.message,
        error.caller,
    )


def test_it_is_caught_as_a_runtime_error() -> None:
    with pytest.raises(RuntimeError, match=r"(?i)read-?only"):
        read_only().fill_(1.0)


class Unprintable:
    """Cannot be printed, as a torch tensor of bits, or only by a copy, as one on a device."""

    array = np.arange(3.0)

    def __repr__(self) -> str:
        raise NotImplementedError("printed")

    def __dlpack__(self, **arguments: Any) -> Any:
        return self.array.__dlpack__(**arguments)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_an_argument_is_not_printed_to_learn_that_it_is_a_tensor() -> None:
    x: Any = Unprintable()
    assert caffe2.Tensor(x).numpy().tolist() == [0, 1, 2]
    assert (c10.float32 == x, c10.Device("cpu") == x) == (False, False)
    for refused in (c10.Device, c10.TypeMeta.Make, lambda one: at.zeros(2, one)):
        with pytest.raises(TypeError, match=r"of type tests\S*Unprintable"):
            refused(x)
    with pytest.raises(TypeError, match="2, None"):
        c10.Device([2, None])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="of type int"):
        c10.Device(10**5000)  # type: ignore[arg-type]
