# SPDX-License-Identifier: Apache-2.0
"""What packages registered with NumPy for DLPack (NumPy 2.5) is an element type of the bridge."""

from __future__ import annotations

import numpy as np
import pytest

from bridge import c10
from bridge.c10.numpy_registry import code_and_bits, has_registry, registered
from tests.helpers.isolate import run_python

needs_registry = pytest.mark.skipif(not has_registry(), reason="NumPy 2.5 has the registry")


@needs_registry
def test_an_array_of_a_registered_type_is_shared() -> None:
    run_python("""
import numpy as np, bridge
from bridge import c10
array = np.array([0x3f80, 0xc000], np.uint16).view("V2")
try:
    bridge.from_dlpack(array)
except BufferError:
    pass
else:
    raise AssertionError("it is not registered yet")
np.dtypes.register_dlpack_dtype((4, 16), np.dtype("V2"))
x = bridge.from_dlpack(array)
assert x.dtype is c10.bfloat16 and c10.TypeMeta.Make(np.dtype("V2")) is c10.bfloat16
assert x.data_ptr() == array.ctypes.data
assert x.to("float32").tolist() == [1.0, -2.0]
""")


@needs_registry
def test_a_type_that_only_the_registry_has_goes_to_numpy() -> None:
    run_python("""
import sys
import numpy as np, bridge
from bridge import at, c10
sys.modules["ml_dtypes"] = None  # as if it was not installed
x = at.from_blob(bytearray(6), (3,), dtype="bfloat16")
try:
    x.numpy()
except TypeError as error:
    assert "ml_dtypes" in str(error)
else:
    raise AssertionError("it is not registered yet")
dtype = np.dtype([("high", "i1"), ("low", "i1")])
np.dtypes.register_dlpack_dtype((4, 16), dtype)
array = x.numpy()
assert array.dtype == dtype and array.ctypes.data == x.data_ptr()
assert bridge.from_dlpack(array).dtype is c10.bfloat16
assert bridge.shares_memory(array, x)
""")


@needs_registry
def test_a_registered_type_that_the_bridge_lacks_is_refused() -> None:
    run_python("""
import numpy as np, bridge
np.dtypes.register_dlpack_dtype((200, 32), np.dtype("V4"))
try:
    bridge.from_dlpack(np.zeros(2, "V4"))
except BufferError as error:
    assert "not exchanged" in str(error)
else:
    raise AssertionError("there is no such type")
""")


@pytest.mark.parametrize("dtype", ["O", "V3", "M8[s]"])
def test_a_type_that_is_not_registered_is_none(dtype: str) -> None:
    assert code_and_bits(np.dtype(dtype)) is None


def test_the_types_of_numpy_itself_are_found_where_there_is_a_registry() -> None:
    for meta in (c10.float32, c10.int8, c10.bool):
        code, bits, _ = meta.dlpack  # type: ignore[misc]
        found = (code_and_bits(meta.numpy), registered(code, bits))
        assert found == (((code, bits), meta.numpy) if has_registry() else (None, None))
    assert registered(200, 32) is None
