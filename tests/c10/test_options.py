# SPDX-License-Identifier: Apache-2.0
"""`c10.TensorOptions`: making, chaining, and what may stand in its place."""

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

from bridge import at, c10, caffe2
from tests.helpers.ids import shown

needs_no_cuda = pytest.mark.skipif(torch.cuda.is_available(), reason="pinning works with CUDA")

FLOAT64 = [
    c10.float64,
    np.dtype("float64"),
    np.float64,
    torch.float64,
    "float64",
    float,
]
CPU = ["cpu", c10.CPU, c10.DeviceType.CPU, c10.Device("cpu"), torch.device("cpu")]


@pytest.mark.parametrize("spelling", FLOAT64, ids=repr)
def test_options_take_every_spelling_of_a_type(spelling: Any) -> None:
    for options in [
        c10.TensorOptions(dtype=spelling),
        c10.dtype(spelling),
        c10.TensorOptions(spelling),
    ]:
        assert isinstance(options, c10.TensorOptions)
        assert options.dtype() == c10.float64
        assert at.empty((2,), options).dtype() == c10.float64


@pytest.mark.parametrize("spelling", [*CPU, "cuda:1", torch.device("cuda:1")], ids=repr)
def test_options_take_every_spelling_of_a_device(spelling: Any) -> None:
    for options in [
        c10.TensorOptions(device=spelling),
        c10.device(spelling),
        c10.TensorOptions(None, spelling),
    ]:
        assert isinstance(options, c10.TensorOptions)
        assert options.device() == spelling


def test_settings_are_chained_in_any_order() -> None:
    for options in [
        c10.dtype("int16").device("cuda:1").pinned_memory(True),
        c10.device("cuda:1").dtype("int16").pinned_memory(True),
        c10.TensorOptions(pinned_memory=True).device("cuda:1").dtype("int16"),
        c10.TensorOptions("int16", "cuda:1", True),
        c10.TensorOptions(dtype="int16", device="cuda:1", pinned_memory=True),
    ]:
        assert options.dtype() == c10.int16
        assert options.device() == "cuda:1"
        assert options.pinned_memory() is True


def test_the_last_setting_wins() -> None:
    options = c10.dtype("int16").dtype("int32").device("cuda").device("cpu")
    options = options.pinned_memory(True).pinned_memory(False)
    assert options.dtype() == c10.int32
    assert options.device() == "cpu"
    assert options.pinned_memory() is False


def test_chaining_leaves_the_original_alone() -> None:
    first = c10.dtype("int16")
    second = first.device("cuda:1")
    third = second.dtype("int32")
    pinned = third.pinned_memory(True)
    assert first is not second
    assert (first.dtype(), second.dtype(), third.dtype()) == (c10.int16, c10.int16, c10.int32)
    assert second.device() == third.device() == "cuda:1"
    assert at.empty((2,), first).device() == "cpu"
    assert (third.pinned_memory(), pinned.pinned_memory()) == (False, True)


@pytest.mark.parametrize("attribute", ["dtype", "device", "pinned_memory", "other"])
def test_options_are_immutable(attribute: str) -> None:
    options = c10.dtype("int16")
    with pytest.raises((AttributeError, TypeError)):
        setattr(options, attribute, "float32")
    options.__init__("float32", "cuda", True)  # as anybody may, and nothing comes of it
    assert (options.dtype(), options.device(), options.pinned_memory()) == (c10.int16, None, False)


def test_options_without_settings_give_float32_on_the_cpu() -> None:
    tensor = at.empty((2,), c10.TensorOptions())
    assert tensor.dtype() == c10.float32
    assert tensor.device() == "cpu"


@pytest.mark.parametrize(
    ("arguments", "keywords"),
    [
        (("no_such_type",), {}),
        ((object(),), {}),
        ((None, "no_such_device"), {}),
        ((None, 3.5), {}),
        ((), {"no_such_option": 1}),
    ],
    ids=shown,
)
def test_wrong_settings_are_refused(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        c10.TensorOptions(*arguments, **keywords)


def test_the_short_forms_refuse_wrong_settings() -> None:
    for broken in [lambda: c10.dtype("no_such_type"), lambda: c10.device("no_such_device")]:
        with pytest.raises((TypeError, ValueError, RuntimeError)):
            broken()


def in_place_of_options() -> list[Any]:
    """Everything that may stand where options stand, each asking for float64."""
    cases: list[Any] = [((spelling,), {}) for spelling in FLOAT64]
    cases += [((), {"dtype": spelling}) for spelling in FLOAT64]
    cases += [((), {"dtype": "float64", "device": device}) for device in CPU]
    cases += [((c10.dtype("float64"),), {}), ((c10.device("cpu").dtype("float64"),), {})]
    return [pytest.param(*case, id=str(number)) for number, case in enumerate(cases)]


@pytest.mark.parametrize(("arguments", "keywords"), in_place_of_options())
def test_factories_take_options_in_every_place(
    arguments: tuple[Any, ...], keywords: dict[str, Any]
) -> None:
    tensors = [
        at.empty((2, 3), *arguments, **keywords),
        at.zeros((2, 3), *arguments, **keywords),
        at.empty(2, 3, *arguments, **keywords),
    ]
    for tensor in tensors:
        assert tensor.dtype() == c10.float64
        assert tensor.device() == "cpu"
        assert tensor.sizes() == (2, 3)


@pytest.mark.parametrize("device", CPU, ids=repr)
def test_a_bare_device_stands_in_place_of_options(device: Any) -> None:
    for tensor in [at.ones((2, 3), device), at.ones(2, 3, device), at.ones((2, 3), device=device)]:
        assert tensor.dtype() == c10.float32
        assert tensor.device() == "cpu"
        assert tensor.sizes() == (2, 3)


@pytest.mark.parametrize("dtype", ["float64", np.int8, c10.bfloat16, torch.uint8])
def test_caffe2_empty_takes_options(dtype: Any) -> None:
    for options in [dtype, c10.dtype(dtype), c10.dtype(dtype).device("cpu")]:
        tensor = caffe2.empty((2, 3), options)
        assert tensor.IsType(dtype)
        assert tensor.sizes() == (2, 3)
        assert tensor.GetDevice() == "cpu"
    assert caffe2.empty((2, 3), dtype=dtype, device="cpu").IsType(dtype)


def test_bfloat16_of_ml_dtypes_names_the_type() -> None:
    assert at.empty((2,), ml_dtypes.bfloat16).dtype() == c10.bfloat16


@needs_no_cuda
def test_pinned_memory_needs_cuda() -> None:
    with pytest.raises(RuntimeError):
        at.empty((2,), c10.dtype("float32").pinned_memory(True))


@pytest.mark.cuda
def test_pinned_memory_is_pinned_for_torch() -> None:
    tensor = at.empty((2,), c10.dtype("float32").pinned_memory(True))
    assert tensor.to_torch().is_pinned()


@pytest.mark.cuda
def test_device_options_put_the_tensor_on_cuda() -> None:
    for tensor in [at.empty((2, 3), c10.device("cuda:0")), at.empty((2, 3), "cuda:0")]:
        assert tensor.device() == "cuda:0"
        assert tensor.to_torch().is_cuda
