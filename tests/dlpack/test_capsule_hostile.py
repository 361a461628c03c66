# SPDX-License-Identifier: Apache-2.0
"""Capsules that lie: each is a BufferError, with the deleter called exactly once.

Each test runs in a process of its own, since what it guards against is a crash.
"""

import gc
from typing import Any

import numpy as np
import pytest

import bridge
from tests.helpers import dlpack_structs as abi
from tests.helpers.dlpack_producer import (
    ManagedTensor,
    OldProducer,
    Producer,
    RaisingProducer,
    StreamProducer,
    TensorSpec,
    stray_deletes,
)
from tests.helpers.isolate import isolated

either_kind = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])
INT64_MAX, INT64_MIN = 2**63 - 1, -(2**63)

# What is wrong with a (2, 3) float32 tensor.
LIES: dict[str, dict[str, Any]] = {
    "NULL data": {"address": None},
    "NULL data with an offset": {"address": None, "byte_offset": 64},
    "NULL shape": {"shape": None, "ndim": 2},
    "NULL shape and strides": {"shape": None, "strides": None, "ndim": 2},
    "NULL shape, absurd ndim": {"shape": None, "strides": None, "ndim": 2**31 - 1},
    "absurd ndim": {"ndim": 2**31 - 1},
    "absurd ndim, NULL strides": {"ndim": 2**30, "strides": None},
    "a million dimensions": {"ndim": 10**6},
    "negative ndim": {"ndim": -1},
    "most negative ndim": {"ndim": -(2**31)},
    "negative ndim, no arrays": {"ndim": -1, "shape": None, "strides": None},
    "negative extent": {"shape": (2, -3)},
    "most negative extent": {"shape": (INT64_MIN, 3)},
    "two negative extents": {"shape": (-2, -3)},
    "negative beside zero": {"shape": (0, -3)},
    "overflowing numel": {"shape": (2**32, 2**32), "strides": (1, 1)},
    "numel that wraps to 0": {"shape": (2**32, 2**32), "strides": (0, 0)},
    "numel that wraps to 6": {"shape": (2**63 - 1, 2**63 - 1, 6), "strides": (0, 0, 0)},
    "overflowing bytes": {"shape": (2**61, 2), "strides": (0, 0)},
    "overflowing numel, NULL strides": {"shape": (2**40, 2**40), "strides": None},
    "overflowing bytes, NULL strides": {"shape": (2**62,), "strides": None},
    "overflowing stride": {"strides": (INT64_MAX, 1)},
    "most negative stride": {"strides": (INT64_MIN, 1)},
    "overflowing span": {"shape": (2**31, 3), "strides": (2**32, 1)},
    "strides whose spans add up too far": {"strides": (2**61 - 1, 2**61 - 1)},
    "below address 0": {"shape": (2**45, 3), "strides": (-(2**15), 1)},
    "overflowing byte offset": {"byte_offset": 2**64 - 1},
    "huge byte offset": {"byte_offset": 2**63},
    "two lanes": {"lanes": 2},
    "no lanes": {"lanes": 0},
    "most lanes": {"lanes": 65535},
    "lanes that wrap": {"bits": 16, "lanes": 2},
    "no bits": {"bits": 0},
    "odd bits": {"bits": 31},
    "float24": {"bits": 24},
    "float128": {"bits": 128},
    "int128": {"code": abi.INT, "bits": 128},
    "bool32": {"code": abi.BOOL, "bits": 32},
    "bool1": {"code": abi.BOOL, "bits": 1},
    "bfloat32": {"code": abi.BFLOAT, "bits": 32},
    "complex8": {"code": abi.COMPLEX, "bits": 8},
    "float8 of 16 bits": {"code": 10, "bits": 16},
    "float6 of 8 bits": {"code": 15, "bits": 8},
    "opaque handles": {"code": abi.OPAQUE, "bits": 64},
    "unknown code": {"code": 200},
    "no device": {"device": (0, 0)},
    "negative device": {"device": (-1, 0)},
    "unknown device": {"device": (9999, 0)},
}


def good(**fields: Any) -> TensorSpec:
    return TensorSpec.of_array(np.arange(6, dtype=np.float32).reshape(2, 3), **fields)


def refuse(source: Any) -> str:
    """The message of the BufferError that `source` meets."""
    try:
        bridge.from_dlpack(source)
    except BufferError as error:
        return str(error)
    raise AssertionError("it was taken")


@either_kind
@pytest.mark.parametrize("lie", LIES)
@isolated
def test_a_capsule_that_lies_is_refused_and_deleted_once(lie: str, versioned: bool) -> None:
    managed = ManagedTensor(good(**LIES[lie]), versioned=versioned)
    capsule = managed.capsule()
    assert refuse(capsule)
    del capsule
    gc.collect()
    assert managed.deleted == 1
    assert stray_deletes == []


@either_kind
@pytest.mark.parametrize("lie", LIES)
@isolated
def test_a_producer_that_lies_is_refused_and_its_capsule_deleted_once(
    lie: str, versioned: bool
) -> None:
    # __dlpack_device__ is truthful: the lie is in the struct alone.
    producer = Producer(good(**LIES[lie]), versioned=versioned, device=(abi.CPU, 0))
    assert refuse(producer)
    gc.collect()
    assert set(producer.deletions) == {1}


@either_kind
@isolated
def test_a_lie_without_a_deleter_is_refused(versioned: bool) -> None:
    for fields in LIES.values():
        managed = ManagedTensor(good(**fields).but(has_deleter=False), versioned=versioned)
        assert refuse(managed.capsule())
        assert managed.deleted == 0


@pytest.mark.parametrize("copy", [True, False])
@pytest.mark.parametrize("lie", ["NULL data", "absurd ndim", "overflowing span", "two lanes"])
@isolated
def test_a_lie_is_refused_whatever_is_said_of_copies(lie: str, copy: bool) -> None:
    producer = Producer(good(**LIES[lie]))
    with pytest.raises(BufferError):
        bridge.from_dlpack(producer, copy=copy)
    gc.collect()
    assert set(producer.deletions) == {1}


@pytest.mark.parametrize("version", [(2, 0), (99, 99), (2**32 - 1, 0), (0, 8)])
@isolated
def test_another_major_version_is_deleted_unread(version: tuple[int, int]) -> None:
    # A later layout may have anything at all behind the flags.
    spec = good(version=version, shape=None, strides=None, ndim=-7, address=1, code=99)
    managed = ManagedTensor(spec, versioned=True)
    capsule = managed.capsule()
    message = refuse(capsule)
    assert str(version[0]) in message
    del capsule
    assert managed.deleted == 1
    producer = Producer(spec, device=(abi.CPU, 0))
    refuse(producer)
    assert set(producer.deletions) == {1}


@pytest.mark.parametrize(
    "name", [b"", b"tensor", b"dltensor ", b"dltensor_version", b"dltensor_versioned2", b"DLTensor"]
)
@isolated
def test_a_capsule_of_another_name_is_refused_and_left_alone(name: bytes) -> None:
    managed = ManagedTensor(good(), versioned=True)
    capsule = managed.capsule(name)
    assert refuse(capsule)
    # It is not known to be a tensor at all: nothing in it may be called.
    assert managed.deleted == 0
    assert abi.capsule_name(capsule) == name
    refuse(Producer(good(), capsule_name=name))


@isolated
def test_a_capsule_without_a_name_is_refused_and_left_alone() -> None:
    managed = ManagedTensor(good(), versioned=True)
    assert refuse(abi.capsule_new(managed.address, None, None))
    assert managed.deleted == 0


@either_kind
@isolated
def test_a_consumed_capsule_is_refused(versioned: bool) -> None:
    managed = ManagedTensor(good(), versioned=versioned)
    capsule = managed.capsule()
    x = bridge.from_dlpack(capsule)
    for _ in range(2):
        refuse(capsule)
    assert managed.deleted == 0
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    del x
    assert managed.deleted == 1
    refuse(capsule)
    assert managed.deleted == 1


class SameCapsule(Producer):
    """A producer that hands out one capsule again and again."""

    capsule: Any = None

    def make(self, versioned: bool) -> Any:
        if self.capsule is None:
            self.capsule = super().make(versioned)
        return self.capsule


@isolated
def test_a_producer_that_repeats_its_capsule_is_refused() -> None:
    producer = SameCapsule(good())
    x = bridge.from_dlpack(producer)
    refuse(producer)
    del x
    assert producer.deletions == [1]


class NoCapsule(Producer):
    """A producer that hands out something else than a capsule."""

    answer: Any = None

    def make(self, versioned: bool) -> Any:
        return self.answer


@pytest.mark.parametrize("answer", [None, 5, "dltensor", (), object], ids=repr)
@isolated
def test_an_answer_that_is_not_a_capsule_is_refused(answer: Any) -> None:
    producer = NoCapsule(good())
    producer.answer = answer
    refuse(producer)


@pytest.mark.parametrize(
    "said", [(abi.CUDA, 0), (abi.CPU, 1), (abi.CUDA_HOST, 0), (9999, 0), (abi.EXT_DEV, 0), (0, 0)]
)
@pytest.mark.parametrize("kind", [Producer, OldProducer, StreamProducer])
@isolated
def test_a_device_that_contradicts_the_capsule_is_refused(
    kind: type[Producer], said: tuple[int, int]
) -> None:
    producer = kind(good(), device=said)
    refuse(producer)
    gc.collect()
    assert set(producer.deletions) <= {1}


@pytest.mark.parametrize("said", [None, 1, (), (1,), (1, 0, 0), ("cpu", 0), "cpu"], ids=repr)
@isolated
def test_a_device_that_is_not_a_pair_of_numbers_is_refused(said: Any) -> None:
    producer = Producer(good())
    producer.device = said
    refuse(producer)
    gc.collect()
    assert set(producer.deletions) <= {1}


class OwnError(Exception):
    """An error of a producer's own kind."""


@pytest.mark.parametrize("error", [BufferError, ValueError, RuntimeError, OwnError])
@isolated
def test_an_error_of_a_producer_is_a_buffer_error(error: type[Exception]) -> None:
    with pytest.raises(BufferError) as caught:
        bridge.from_dlpack(RaisingProducer(error("out of paper")))
    assert "out of paper" in f"{caught.value} {caught.value.__cause__}"


@isolated
def test_an_interrupt_in_a_producer_reaches_the_caller() -> None:
    with pytest.raises(KeyboardInterrupt):
        bridge.from_dlpack(RaisingProducer(KeyboardInterrupt()))


class DeviceRaises(Producer):
    """A producer whose device cannot be asked for."""

    def __dlpack_device__(self) -> tuple[int, int]:
        raise RuntimeError("no such device")


@isolated
def test_a_producer_whose_device_raises_is_refused() -> None:
    producer = DeviceRaises(good())
    refuse(producer)
    gc.collect()
    assert set(producer.deletions) <= {1}
