# SPDX-License-Identifier: Apache-2.0
"""What we hand out is deleted exactly once, also by a consumer that refuses it half-way.

The producer's memory is freed with its deleter, which counts; a second deletion of ours would abort
the process, so each case runs in a process of its own.
"""

from __future__ import annotations

import gc
import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.isolate import isolated

OPENCL, VULKAN, METAL, VPI, ROCM, MANAGED, ONEAPI, MAIA = 4, 7, 8, 9, 10, 13, 14, 17
DEVICES = [
    *((abi.CUDA, index) for index in (0, 1)),
    *((kind, 0) for kind in (OPENCL, VULKAN, METAL, VPI, ROCM, abi.EXT_DEV, MANAGED)),
    *((kind, 0) for kind in (ONEAPI, 15, 16, MAIA)),
]
# (code, bits) of DLPack that some consumer does not know
TYPES = [(0, 4), (1, 2), (0, 6), (abi.COMPLEX, 32), (7, 8), (9, 8), (16, 6), (17, 4)]


def legacy(x: Any) -> Any:
    return x.__dlpack__(stream=-1 if x.__dlpack_device__()[0] in (2, 10, 13) else None)


def versioned(x: Any) -> Any:
    stream = -1 if x.__dlpack_device__()[0] in (2, 10, 13) else None
    return x.__dlpack__(stream=stream, max_version=(1, 3))


def module(name: str) -> Any:
    return importlib.import_module(name)


def from_torch_capsule(x: Any) -> Any:
    return module("torch").utils.dlpack.from_dlpack(legacy(x))


def from_torch_versioned(x: Any) -> Any:
    return module("torch").utils.dlpack.from_dlpack(versioned(x))


def from_tensorflow_capsule(x: Any) -> Any:
    return module("tensorflow").experimental.dlpack.from_dlpack(legacy(x))


CONSUMERS: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "to_torch": ("torch", bridge.to_torch),
    "torch.from_dlpack": ("torch", lambda x: module("torch").from_dlpack(x)),
    "torch, a legacy capsule": ("torch", from_torch_capsule),
    "torch, a versioned capsule": ("torch", from_torch_versioned),
    "to_numpy": ("numpy", bridge.to_numpy),
    "numpy.from_dlpack": ("numpy", np.from_dlpack),
    "to_jax": ("jax", bridge.to_jax),
    "jax.dlpack.from_dlpack": ("jax", lambda x: module("jax").dlpack.from_dlpack(x)),
    "to_tensorflow": ("tensorflow", bridge.to_tensorflow),
    "tensorflow, a capsule": ("tensorflow", from_tensorflow_capsule),
    "tvm_ffi.from_dlpack": ("tvm_ffi", lambda x: module("tvm_ffi").from_dlpack(x)),
    "paddle.from_dlpack": ("paddle", lambda x: module("paddle").from_dlpack(x)),
}


def spec(**fields: Any) -> TensorSpec:
    array = np.arange(64, dtype=np.float32)
    start = array.ctypes.data + (-array.ctypes.data) % 64  # as TensorFlow wants it
    return TensorSpec(start, (8,), (1,), owner=array, **fields)


def give(consumer: Callable[[Any], Any], what: TensorSpec, legacy_producer: bool) -> None:
    producer = Producer(what, versioned=not legacy_producer)
    try:
        got = consumer(bridge.from_dlpack(producer))
    except Exception:  # noqa: BLE001  what it is, is the consumer's matter
        got = None
    del got
    gc.collect()
    assert [made.deleted for made in producer.made] == [1]


@pytest.mark.parametrize("name", CONSUMERS)
@isolated
def test_a_capsule_of_any_device_is_deleted_once_by_any_consumer(name: str) -> None:
    package, consumer = CONSUMERS[name]
    pytest.importorskip(package, reason=f"{package} is not installed")
    for device in DEVICES:
        for from_legacy in (False, True):
            give(consumer, spec(device=device), from_legacy)


@pytest.mark.parametrize("name", CONSUMERS)
@isolated
def test_a_capsule_of_any_element_type_is_deleted_once_by_any_consumer(name: str) -> None:
    package, consumer = CONSUMERS[name]
    pytest.importorskip(package, reason=f"{package} is not installed")
    for code, bits in TYPES:
        flags = 4 if bits < 8 else 0  # a byte for each
        give(consumer, spec(code=code, bits=bits, flags=flags), False)


@isolated
def test_a_capsule_without_a_consumer_is_deleted_once() -> None:
    producer = Producer(spec())
    x = bridge.from_dlpack(producer)
    capsules = [x.__dlpack__(), x.__dlpack__(max_version=(1, 3))]
    del x
    gc.collect()
    assert producer.made[0].deleted == 0
    capsules.clear()
    gc.collect()
    assert producer.made[0].deleted == 1


def test_many_deleted_capsules_do_not_delay_the_release_of_memory() -> None:
    # more than are kept at a time: the blocks go, and what they own went at once
    array = np.ones(3)
    for _ in range(1000):
        np.from_dlpack(bridge.from_dlpack(array))
    producer = Producer(spec())
    shared = np.from_dlpack(bridge.from_dlpack(producer))
    assert producer.made[0].deleted == 0
    del shared
    gc.collect()
    assert producer.made[0].deleted == 1
