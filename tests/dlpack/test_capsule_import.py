# SPDX-License-Identifier: Apache-2.0
"""`bridge.from_dlpack` of well-formed capsules and producers of every generation."""

import itertools
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import at, c10, caffe2
from tests.helpers import dlpack_structs as abi
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_producer import (
    ManagedTensor,
    OldProducer,
    Producer,
    StreamProducer,
    TensorSpec,
)
from tests.helpers.element_types import ELEMENT_TYPES, ElementType

either_kind = pytest.mark.parametrize("versioned", [True, False], ids=["versioned", "legacy"])


def array(*shape: int) -> np.ndarray:
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


@either_kind
def test_a_bare_capsule_is_shared(versioned: bool) -> None:
    source = array(3, 4)
    managed = ManagedTensor(TensorSpec.of_array(source), versioned=versioned)
    capsule = managed.capsule()
    x = bridge.from_dlpack(capsule)
    assert type(x) is at.Tensor
    used = abi.USED_VERSIONED_NAME if versioned else abi.USED_LEGACY_NAME
    assert abi.capsule_name(capsule) == used
    check_tensor(x, (3, 4), address=source.ctypes.data, data=source.tobytes())
    source[1, 1] = -1.0
    assert x[1, 1].item() == -1.0
    assert managed.deleted == 0
    del x, capsule
    assert managed.deleted == 1


@either_kind
@pytest.mark.parametrize("element", ELEMENT_TYPES, ids=str)
def test_every_element_type_is_shared(element: ElementType, versioned: bool) -> None:
    data = element.sample_bytes(6)
    memory = np.frombuffer(bytearray(data), np.uint8)
    spec = TensorSpec.of_array(memory, code=element.code, bits=element.bits)
    managed = ManagedTensor(spec.but(shape=(2, 3), strides=(3, 1)), versioned=versioned)
    x = bridge.from_dlpack(managed.capsule())
    check_tensor(x, (2, 3), element, address=memory.ctypes.data, data=data)
    assert x.dtype() == getattr(c10, element.name)
    del x
    assert managed.deleted == 1


@either_kind
def test_parts_of_the_cpu_are_the_cpu(versioned: bool) -> None:
    # JAX exports arrays of its second CPU "device" so
    source = array(3)
    spec = TensorSpec.of_array(source, device=(abi.CPU, 1))
    x = bridge.from_dlpack(ManagedTensor(spec, versioned=versioned).capsule())
    assert x.device() == "cpu"
    assert x.data_ptr() == source.ctypes.data
    assert bridge.to_torch(x).tolist() == [0, 1, 2]


LAYOUTS: dict[str, np.ndarray] = {
    "0-d": array(1)[0:1].reshape(()),
    "one": array(1),
    "empty": array(2, 0, 3),
    "transposed": array(3, 4).T,
    "every other": array(4, 6)[::2, 1::3],
    "backwards": array(5)[::-1],
    "backwards along one axis": array(3, 4)[:, ::-1],
    "expanded": np.broadcast_to(array(3, 1), (3, 4)),
    "expanded 0-d": np.broadcast_to(np.float32(7), (2, 2)),
    "axes of one": array(1, 5, 1)[:, ::2],
    "many axes": array(*(1,) * 60, 2, 3),
}


@either_kind
@pytest.mark.parametrize("name", LAYOUTS)
def test_every_layout_is_shared(name: str, versioned: bool) -> None:
    source = LAYOUTS[name]
    spec = TensorSpec.of_array(source)
    x = bridge.from_dlpack(ManagedTensor(spec, versioned=versioned).capsule())
    check_tensor(
        x, source.shape, strides=spec.strides, address=source.ctypes.data, data=source.tobytes()
    )


@either_kind
def test_null_strides_are_compact(versioned: bool) -> None:
    source = array(2, 3, 4)
    spec = TensorSpec.of_array(source, strides=None, version=(1, 0))
    x = bridge.from_dlpack(ManagedTensor(spec, versioned=versioned).capsule())
    check_tensor(x, (2, 3, 4), strides=(12, 4, 1), address=source.ctypes.data)


@either_kind
def test_a_byte_offset_moves_the_address(versioned: bool) -> None:
    source = array(10)
    spec = TensorSpec.of_array(source, shape=(4,), byte_offset=12)
    x = bridge.from_dlpack(ManagedTensor(spec, versioned=versioned).capsule())
    check_tensor(x, (4,), address=source.ctypes.data + 12, data=source[3:7].tobytes())


@either_kind
def test_0d_needs_no_arrays(versioned: bool) -> None:
    source = array(1)
    spec = TensorSpec.of_array(source, shape=None, strides=None)
    x = bridge.from_dlpack(ManagedTensor(spec, versioned=versioned).capsule())
    check_tensor(x, (), address=source.ctypes.data, data=source.tobytes())


@either_kind
def test_an_empty_tensor_needs_no_memory(versioned: bool) -> None:
    spec = TensorSpec(None, (3, 0), (0, 1))
    managed = ManagedTensor(spec, versioned=versioned)
    x = bridge.from_dlpack(managed.capsule())
    check_tensor(x, (3, 0), data=b"")
    del x
    assert managed.deleted == 1


@either_kind
def test_a_capsule_without_a_deleter_is_shared(versioned: bool) -> None:
    source = array(3)
    spec = TensorSpec.of_array(source, has_deleter=False)
    managed = ManagedTensor(spec, versioned=versioned)
    x = bridge.from_dlpack(managed.capsule())
    check_tensor(x, (3,), address=source.ctypes.data)
    del x
    assert managed.deleted == 0


def test_the_read_only_flag() -> None:
    source = array(3)
    producer = Producer(TensorSpec.of_array(source, flags=abi.READ_ONLY))
    x = bridge.from_dlpack(producer)
    check_tensor(x, (3,), address=source.ctypes.data, readonly=True)
    for write in (
        lambda: x.fill_(1),
        lambda: x.zero_(),
        lambda: x.copy_(at.zeros(3)),
        lambda: x.__setitem__(0, 1.0),
        lambda: x[1:].fill_(1),
        lambda: x.add_(1),
        lambda: caffe2.Tensor(x).mutable_data("float32"),
    ):
        with pytest.raises(c10.EnforceNotMet):
            write()
    assert source.tolist() == [0, 1, 2]


def test_a_read_only_copy_is_read_only() -> None:
    """Whoever may be the only user of the memory: the flag says that it is not written."""
    source = array(3)
    producer = Producer(TensorSpec.of_array(source, flags=abi.READ_ONLY | abi.IS_COPIED))
    assert bridge.from_dlpack(producer).readonly
    producer = Producer(TensorSpec.of_array(source, flags=abi.IS_COPIED))
    assert not bridge.from_dlpack(producer).readonly


def test_a_copy_that_says_so_is_not_shared() -> None:
    source = array(3)
    producer = Producer(TensorSpec.of_array(source, flags=abi.IS_COPIED))
    with pytest.raises(BufferError, match="returned a copy"):
        bridge.from_dlpack(producer, copy=False)
    assert [made.deleted for made in producer.made] == [1]
    with bridge.audit() as log:
        bridge.from_dlpack(producer)
    assert log.copied_bytes == source.nbytes
    assert not bridge.shares_memory(producer, source)


@pytest.mark.parametrize("version", [(1, 0), (1, 1), (1, 3), (1, 99)])
def test_every_minor_version_is_read(version: tuple[int, int]) -> None:
    source = array(3)
    producer = Producer(TensorSpec.of_array(source, version=version))
    check_tensor(bridge.from_dlpack(producer), (3,), address=source.ctypes.data)


@pytest.mark.parametrize("kind", [Producer, OldProducer, StreamProducer])
def test_every_signature_of_dlpack_methods_is_called_once(kind: type[Producer]) -> None:
    source = array(2, 2)
    producer = kind(TensorSpec.of_array(source))
    x = bridge.from_dlpack(producer)
    check_tensor(x, (2, 2), address=source.ctypes.data)
    assert len(producer.made) == 1
    del x
    assert producer.deletions == [1]


def test_a_new_producer_is_asked_for_a_version() -> None:
    producer = Producer(TensorSpec.of_array(array(2)))
    bridge.from_dlpack(producer)
    assert producer.calls[0]["max_version"] == (1, 3)
    assert producer.made[0].versioned


def test_a_new_producer_may_answer_with_a_legacy_capsule() -> None:
    producer = Producer(TensorSpec.of_array(array(2)), versioned=False)
    x = bridge.from_dlpack(producer)
    check_tensor(x, (2,), address=producer.spec.address)
    del x
    assert producer.deletions == [1]


class TypeErrorInside(Producer):
    """A producer with the new signature whose own code raises TypeError."""

    def make(self, versioned: bool) -> Any:
        raise TypeError("a mistake of the producer's own")


def test_a_type_error_inside_the_producer_reaches_the_caller() -> None:
    with pytest.raises((TypeError, BufferError)):
        bridge.from_dlpack(TypeErrorInside(TensorSpec.of_array(array(2))))


@pytest.mark.parametrize("copy", [None, False, True])
def test_copy_true_copies_and_none_or_false_shares(copy: bool | None) -> None:
    source = array(2, 3)
    producer = Producer(TensorSpec.of_array(source))
    x = bridge.from_dlpack(producer, copy=copy)
    if copy:
        assert x.data_ptr() != source.ctypes.data
        check_tensor(x, (2, 3), data=source.tobytes())
    else:
        check_tensor(x, (2, 3), address=source.ctypes.data)


def test_a_copy_asked_for_is_writable_and_own() -> None:
    source = array(2, 3)
    source.flags.writeable = False
    x = bridge.from_dlpack(Producer(TensorSpec.of_array(source, flags=abi.READ_ONLY)), copy=True)
    check_tensor(x, (2, 3), data=source.tobytes())
    x.fill_(5)
    assert source[1, 2] == 5
    assert source[0, 0] == 0


def test_a_copy_needs_its_source_no_longer() -> None:
    producer = Producer(TensorSpec.of_array(array(4)))
    x = bridge.from_dlpack(producer, copy=True)
    assert set(producer.deletions) == {1}
    assert x.tolist() == [0, 1, 2, 3]


def test_misaligned_data_is_copied() -> None:
    memory = np.zeros(17, np.uint8)
    skewed = memory[1:]
    values = np.arange(4, dtype=np.float32)
    skewed[:] = values.view(np.uint8)
    producer = Producer(TensorSpec.of_array(skewed, shape=(4,), code=abi.FLOAT, bits=32))
    assert producer.spec.address is not None
    assert producer.spec.address % 4
    with pytest.raises(BufferError):
        bridge.from_dlpack(producer, copy=False)
    x = bridge.from_dlpack(producer)
    check_tensor(x, (4,), data=values.tobytes())
    assert x.data_ptr() % 4 == 0
    assert producer.deletions == [1, 1]


def test_the_device_of_the_memory_shares_it() -> None:
    source = array(2)
    for device in ("cpu", c10.Device("cpu"), c10.CPU):
        x = bridge.from_dlpack(Producer(TensorSpec.of_array(source)), device=device)
        assert x.data_ptr() == source.ctypes.data


def test_both_wrappers_are_shared() -> None:
    x = at.ones(2, 3)
    again = bridge.from_dlpack(x)
    assert again.data_ptr() == x.data_ptr()
    flat = caffe2.Tensor(x)
    assert bridge.from_dlpack(flat).data_ptr() == x.data_ptr()


def test_two_imports_of_one_producer_are_two_structs() -> None:
    producer = Producer(TensorSpec.of_array(array(2)))
    first, second = bridge.from_dlpack(producer), bridge.from_dlpack(producer)
    assert first.data_ptr() == second.data_ptr()
    del first
    assert producer.deletions == [1, 0]
    assert second.tolist() == [0, 1]
    del second
    assert producer.deletions == [1, 1]


@pytest.mark.parametrize(("code", "bits"), [(abi.INT, 4), (abi.UINT, 1), (15, 6), (17, 4)])
def test_packed_types_that_end_within_a_byte_are_refused(code: int, bits: int) -> None:
    memory = np.zeros(8, np.uint8)
    for versioned, numel in itertools.product((True, False), (1, 3, 5)):
        spec = TensorSpec.of_array(memory, shape=(numel,), code=code, bits=bits)
        managed = ManagedTensor(spec, versioned=versioned)
        with pytest.raises(BufferError):
            bridge.from_dlpack(managed.capsule())
        assert managed.deleted == 1
