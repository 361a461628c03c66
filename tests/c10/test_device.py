# SPDX-License-Identifier: Apache-2.0
"""`c10.DeviceType` and `c10.Device`: every spelling of a device, and equality with each."""

import copy
import pickle

import pytest
import torch

from bridge import at, c10, caffe2

# The enumerators of DLDeviceType in dlpack.h 1.3, without their prefix.
DLPACK_DEVICES = {
    "CPU": 1,
    "CUDA": 2,
    "CUDAHost": 3,
    "OpenCL": 4,
    "Vulkan": 7,
    "Metal": 8,
    "VPI": 9,
    "ROCM": 10,
    "ROCMHost": 11,
    "ExtDev": 12,
    "CUDAManaged": 13,
    "OneAPI": 14,
    "WebGPU": 15,
    "Hexagon": 16,
    "MAIA": 17,
    "Trn": 18,
    "TPU": 19,
    "TPUHost": 20,
}

SPELLINGS = [
    pytest.param("cpu", c10.DeviceType.CPU, id="str-cpu"),
    pytest.param("cuda", c10.DeviceType.CUDA, id="str-cuda"),
    pytest.param("cuda:1", c10.DeviceType.CUDA, id="str-cuda1"),
    pytest.param("ext_dev", c10.DeviceType.ExtDev, id="str-ext_dev"),
    pytest.param(c10.DeviceType.CPU, c10.DeviceType.CPU, id="type-cpu"),
    pytest.param(c10.DeviceType.CUDA, c10.DeviceType.CUDA, id="type-cuda"),
    pytest.param(c10.DeviceType.ExtDev, c10.DeviceType.ExtDev, id="type-ext_dev"),
    pytest.param(c10.Device("cuda:1"), c10.DeviceType.CUDA, id="Device"),
    pytest.param(torch.device("cpu"), c10.DeviceType.CPU, id="torch-cpu"),
    pytest.param(torch.device("cuda"), c10.DeviceType.CUDA, id="torch-cuda"),
    pytest.param(torch.device("cuda", 1), c10.DeviceType.CUDA, id="torch-cuda1"),
]


@pytest.mark.parametrize(("name", "number"), DLPACK_DEVICES.items(), ids=DLPACK_DEVICES)
def test_device_types_have_the_numbers_of_dlpack(name: str, number: int) -> None:
    assert int(getattr(c10.DeviceType, name)) == number


def test_cpu_and_cuda_are_short_names_of_their_device_types() -> None:
    assert c10.CPU == c10.DeviceType.CPU
    assert c10.CUDA == c10.DeviceType.CUDA
    assert c10.CPU != c10.CUDA


@pytest.mark.parametrize(("spelling", "device_type"), SPELLINGS)
def test_a_device_is_made_from_every_spelling_and_equals_it(
    spelling: object, device_type: c10.DeviceType
) -> None:
    device = c10.Device(spelling)
    assert device.type == device_type
    assert device == spelling
    assert spelling == device
    assert (device != spelling) is False


@pytest.mark.parametrize("spelling", ["cuda:1", torch.device("cuda:1"), c10.Device("cuda:1")])
def test_every_spelling_carries_the_index(spelling: object) -> None:
    assert c10.Device(spelling).index == 1


def test_index_is_an_int() -> None:
    assert isinstance(c10.Device("cuda:3").index, int)
    assert c10.Device("cuda:3").index == 3


@pytest.mark.parametrize("name", DLPACK_DEVICES)
def test_text_names_the_same_device(name: str) -> None:
    device = c10.Device(getattr(c10.DeviceType, name))
    assert c10.Device(str(device)) == device
    assert c10.Device(str(device)).type == device.type


def test_text_keeps_the_index() -> None:
    assert c10.Device(str(c10.Device("cuda:1"))).index == 1
    assert "cuda" in repr(c10.Device("cuda:1"))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("cpu", "cuda"),
        ("cuda:0", "cuda:1"),
        ("cpu", "ext_dev"),
        ("cpu", c10.DeviceType.CUDA),
        ("cuda:1", torch.device("cuda:0")),
        ("cuda:1", torch.device("cpu")),
    ],
)
def test_different_devices_are_unequal(left: object, right: object) -> None:
    assert c10.Device(left) != c10.Device(right)
    assert c10.Device(left) != right
    assert (c10.Device(left) == right) is False


@pytest.mark.parametrize("other", [None, 3.5, "no_such_device", object(), [], "cpu:x"])
def test_an_object_that_is_not_a_device_is_unequal(other: object) -> None:
    assert (c10.Device("cpu") == other) is False
    assert c10.Device("cpu") != other


def test_a_device_is_a_str() -> None:
    device = c10.Device("cuda:1")
    assert isinstance(device, str)
    assert f"{device}" == str(device) == "".join([device]) == "cuda:1"
    assert hash(device) == hash("cuda:1")
    assert {"cuda:1": 1}[device] == {device: 1}["cuda:1"] == 1
    assert device() is device
    assert c10.Device("cuda", 1) == c10.Device("CUDA:1") == c10.Device(device) == device
    assert torch.device(device) == device == torch.device("cuda", 1)
    assert pickle.loads(pickle.dumps(device)) == copy.deepcopy(device) == device


class OwnDevice(c10.Device):
    """A subclass, as any class may have."""


def test_a_subclass_of_device_keeps_its_class() -> None:
    device = OwnDevice("cuda", index=1)
    assert (type(device), device.type, device.index) == (OwnDevice, c10.CUDA, 1)
    assert device == "cuda:1"


@pytest.mark.parametrize("arguments", [(), ("cpu", None, None), (2,)])
def test_a_device_refuses_wrong_arguments(arguments: tuple[object, ...]) -> None:
    with pytest.raises(TypeError):
        c10.Device(*arguments)
    with pytest.raises(TypeError):
        c10.Device("cpu", number=0)


def test_equal_devices_have_equal_hashes() -> None:
    assert hash(c10.Device("cuda:1")) == hash(c10.Device(torch.device("cuda:1")))
    assert len({c10.Device("cpu"), c10.Device("cpu"), c10.Device("cuda:1")}) == 2


@pytest.mark.parametrize("text", ["", "no_such_device", "cuda:", "cuda:x", "cuda:-1", "cuda:1:2"])
def test_text_that_names_no_device_is_refused(text: str) -> None:
    with pytest.raises((ValueError, RuntimeError)):
        c10.Device(text)


@pytest.mark.parametrize("spelling", [3.5, [], object(), {"type": "cpu"}])
def test_a_device_refuses_objects_that_do_not_name_one(spelling: object) -> None:
    with pytest.raises(TypeError):
        c10.Device(spelling)


def test_torch_device_without_a_counterpart_is_refused() -> None:
    with pytest.raises((TypeError, ValueError, RuntimeError)):
        c10.Device(torch.device("meta"))


@pytest.mark.parametrize(("attribute", "value"), [("type", c10.DeviceType.CPU), ("index", 2)])
def test_devices_are_immutable(attribute: str, value: object) -> None:
    device = c10.Device("cuda:1")
    with pytest.raises(AttributeError):
        setattr(device, attribute, value)
    assert device == "cuda:1"


@pytest.mark.parametrize(
    "spelling", ["cpu", c10.CPU, c10.DeviceType.CPU, c10.Device("cpu"), torch.device("cpu")]
)
def test_a_tensor_on_the_device_says_so(spelling: object) -> None:
    device = at.empty((2, 3), device=spelling).device()
    assert isinstance(device, c10.Device)
    assert device == spelling
    assert device.type == c10.CPU


@pytest.mark.parametrize("index", [2**15 - 1, 2**15, 70_000, 2**31 - 1])
def test_a_tensor_keeps_the_index_of_its_device(index: int) -> None:
    device = f"ext_dev:{index}"
    assert caffe2.Tensor((2,), device).GetDevice() == device
    assert caffe2.Tensor((2,), device).storage().device().index == index


@pytest.mark.parametrize("number", ["2147483648", "9" * 20, "9" * 5000])
def test_an_index_that_dlpack_cannot_hold_is_refused(number: str) -> None:
    with pytest.raises(c10.EnforceValueError, match=number):
        c10.Device(f"cuda:{number}")


def test_a_type_is_equal_to_its_name_and_its_number() -> None:
    for kind in c10.DeviceType:
        assert kind == str(kind) == f"{kind}"
        assert kind == int(kind)
        assert kind != "no_such_device"
        assert {int(kind): 1}[kind] == {kind: 1}[int(kind)] == 1
    assert c10.Device("cuda:1").type == "cuda"
    assert c10.Device("cpu").type != "cuda"
    assert c10.Device("cpu").type in ("cpu", "cuda")
    assert f"{c10.Device('cuda:1').type}:1" == "cuda:1"
