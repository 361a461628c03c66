# SPDX-License-Identifier: Apache-2.0
"""`bridge.from_dlpack` of objects whose type offers a C exchange table, good or broken.

Each test runs in a process of its own, since a table is trusted with pointers.
"""

import ctypes
import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import bridge
from bridge import c10
from tests.helpers import dlpack_structs as abi
from tests.helpers.check import check_tensor
from tests.helpers.dlpack_producer import Producer, TensorSpec
from tests.helpers.dlpack_table import Table, producer_type
from tests.helpers.isolate import isolated

FROM_PY = "managed_tensor_from_py_object_no_sync"


def spec(**fields: Any) -> TensorSpec:
    return TensorSpec.of_array(np.arange(6, dtype=np.float32).reshape(2, 3), **fields)


class NoMethod(Producer):
    """A producer that must be read through its table."""

    def make(self, versioned: bool) -> Any:
        raise AssertionError("the table was there")


@isolated
def test_the_table_is_read_before_the_method() -> None:
    table = Table()
    producer = producer_type(table, NoMethod)(spec())
    x = bridge.from_dlpack(producer)
    assert FROM_PY in table.calls
    check_tensor(x, (2, 3), address=producer.spec.address)
    assert producer.calls == []
    assert producer.deletions == [0]
    del x
    assert producer.deletions == [1]


@isolated
def test_the_type_stays_known() -> None:
    kind = producer_type(Table(), NoMethod)
    producers = [kind(spec(flags=abi.READ_ONLY * (i % 2))) for i in range(4)]
    for i, producer in enumerate(producers):
        x = bridge.from_dlpack(producer)
        check_tensor(x, (2, 3), address=producer.spec.address, readonly=bool(i % 2))
        if i % 2:
            with pytest.raises(c10.EnforceNotMet):
                x.zero_()
    del x
    assert [producer.deletions for producer in producers] == [[1]] * 4


@isolated
def test_a_table_on_an_instance_is_not_used() -> None:
    producer = Producer(spec())
    producer.__dlpack_c_exchange_api__ = Table(null=(FROM_PY,)).capsule()  # type: ignore[attr-defined]
    x = bridge.from_dlpack(producer)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert len(producer.calls) == 1


@isolated
def test_the_borrowing_function_may_be_missing() -> None:
    producer = producer_type(Table(null=("dltensor_from_py_object_no_sync",)), NoMethod)(spec())
    x = bridge.from_dlpack(producer)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    del x
    assert set(producer.deletions) == {1}


@isolated
def test_an_older_table_of_ours_is_found_in_the_chain() -> None:
    producer = producer_type(Table(version=(2, 0), prev=Table()), NoMethod)(spec())
    assert bridge.from_dlpack(producer).tolist() == [[0, 1, 2], [3, 4, 5]]


@isolated
def test_a_chain_without_an_end_is_refused() -> None:
    first, second = Table(version=(3, 0)), Table(version=(2, 0))
    first.struct.prev_api = ctypes.addressof(second.struct)
    second.struct.prev_api = ctypes.addressof(first.struct)
    with pytest.raises(BufferError, match="broken"):
        bridge.from_dlpack(producer_type(first)(spec()))


@isolated
def test_a_future_table_is_left_alone() -> None:
    table = Table(version=(2, 0))
    producer = producer_type(table)(spec())
    assert bridge.from_dlpack(producer).tolist() == [[0, 1, 2], [3, 4, 5]]
    assert len(producer.calls) == 1
    assert table.calls == [], "its layout is not known"


def nothing_at_all(_producer: Any) -> tuple[None, int]:
    return None, 0


def fails_without_a_word(_producer: Any) -> tuple[None, int]:
    return None, -1


def fails_with_another_status(_producer: Any) -> tuple[None, int]:
    return None, 17


BROKEN_TABLES: dict[str, Callable[[], Any]] = {
    "an int": lambda: 12345,
    "an address": lambda: ctypes.addressof(Table().struct),
    "a string": lambda: "dlpack_exchange_api",
    "a capsule of another name": lambda: Table().capsule(b"dltensor"),
    "a capsule of an older name": lambda: Table().capsule(b"dlpack_exchange_api_v0"),
    "no function": lambda: Table(null=(FROM_PY,)),
    "a success without a tensor": lambda: Table(from_py=nothing_at_all),
    "a failure without an exception": lambda: Table(from_py=fails_without_a_word),
    "a status that does not exist": lambda: Table(from_py=fails_with_another_status),
}


@pytest.mark.parametrize("name", BROKEN_TABLES)
@isolated
def test_a_broken_table_is_refused(name: str) -> None:
    producer = producer_type(BROKEN_TABLES[name](), NoMethod)(spec())
    for _ in range(2):
        with pytest.raises(BufferError) as caught:
            bridge.from_dlpack(producer)
        assert str(caught.value)
    gc.collect()
    assert set(producer.deletions) <= {1}


@isolated
def test_a_success_with_a_pending_exception_is_refused() -> None:
    table = Table()
    # It sets a TypeError and returns 0.
    function = ctypes.cast(ctypes.pythonapi.PyErr_BadArgument, ctypes.c_void_p).value
    setattr(table.struct, FROM_PY, function)
    producer = producer_type(table, NoMethod)(spec())
    for _ in range(2):
        with pytest.raises(BufferError, match="bad argument"):
            bridge.from_dlpack(producer)


LIES: dict[str, dict[str, Any]] = {
    "future major version": {"version": (2, 0), "ndim": -5, "shape": None},
    "NULL data": {"address": None},
    "NULL shape": {"shape": None, "ndim": 2},
    "absurd ndim": {"ndim": 2**30},
    "negative ndim": {"ndim": -1},
    "negative extent": {"shape": (-2, 3)},
    "overflowing numel": {"shape": (2**40, 2**40)},
    "overflowing stride": {"strides": (2**62, 1)},
    "two lanes": {"lanes": 2},
    "unknown type": {"code": 77},
    "unknown device": {"device": (9999, 0)},
}


@pytest.mark.parametrize("lie", LIES)
@isolated
def test_a_table_that_hands_out_a_lie_is_refused(lie: str) -> None:
    producer = producer_type(Table(), NoMethod)(spec(**LIES[lie]))
    producer.device = (abi.CPU, 0)
    with pytest.raises(BufferError):
        bridge.from_dlpack(producer)
    gc.collect()
    assert producer.deletions == [1]


@isolated
def test_null_strides_of_a_table_are_row_major() -> None:
    # Forbidden since DLPack 1.2, yet harmless: older producers mean compact.
    producer = producer_type(Table(), NoMethod)(spec(strides=None))
    x = bridge.from_dlpack(producer)
    check_tensor(x, (2, 3), address=producer.spec.address)


@isolated
def test_a_table_may_hand_out_memory_without_a_deleter() -> None:
    producer = producer_type(Table(), NoMethod)(spec(has_deleter=False))
    x = bridge.from_dlpack(producer)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    del x
    assert producer.deletions == [0]


@isolated
def test_copy_true_copies_through_the_table() -> None:
    producer = producer_type(Table(), NoMethod)(spec(flags=abi.READ_ONLY))
    x = bridge.from_dlpack(producer, copy=True)
    assert x.data_ptr() != producer.spec.address
    assert not x.readonly
    assert set(producer.deletions) == {1}
