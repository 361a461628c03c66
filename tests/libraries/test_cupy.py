# SPDX-License-Identifier: Apache-2.0
"""The adapter of CuPy, with a stand-in for CuPy that holds host memory.

What it shows: what goes to ``cupy.from_dlpack``, what is copied before, and what is refused. That
CuPy's arrays are CUDA memory, the tests marked `cuda` see to.
"""

from __future__ import annotations

from tests.helpers.isolate import run_python

STAND_IN = """
import sys, types
import numpy as np
import bridge
from bridge import at

class ndarray:
    def __init__(self, held):
        self.held = held
    nbytes = property(lambda self: self.held.nbytes)
    def copy(self):
        return ndarray(self.held.copy())

def from_dlpack(x):
    taken.append(x)
    return ndarray(np.from_dlpack(x))

taken = []
cupy = types.ModuleType("cupy")
cupy.ndarray, cupy.from_dlpack = ndarray, from_dlpack
sys.modules["cupy"] = cupy
from bridge.libraries import cupy as adapter

def there(impl, device, copy=None):
    # to the device: a copy that stays in host memory
    assert device == "cuda"
    if copy is False:
        raise BufferError("elsewhere")
    return at.Tensor._wrap(impl).clone().unsafeGetTensorImpl()

adapter.to_device = there
"""

ARRAYS = """
own = ndarray(np.arange(3.0))
assert bridge.to_cupy(own) is own
assert bridge.convert(own, "cupy") is own
assert bridge.to_cupy(own, copy=True) is not own
"""

FROM_THE_HOST = """
source = np.arange(3.0)
made = bridge.to_cupy(source)
assert type(made) is ndarray and made.held.tolist() == [0, 1, 2]
assert made.held.ctypes.data != source.ctypes.data
try:
    bridge.to_cupy(source, copy=False)
except BufferError:
    pass
else:
    raise AssertionError("a copy to the device is a copy")
"""

ON_THE_DEVICE = """
# host memory that counts as CUDA memory
adapter.is_cuda = lambda impl: True
source = np.arange(3.0)
frozen = source.view()
frozen.flags.writeable = False
address = source.ctypes.data
assert bridge.to_cupy(source).held.ctypes.data == address
assert bridge.to_cupy(source, copy=False).held.ctypes.data == address
assert bridge.to_cupy(source, copy=True).held.ctypes.data != address
copied = bridge.to_cupy(frozen).held
assert copied.ctypes.data != address and copied.flags.writeable
try:
    bridge.to_cupy(frozen, copy=False)
except BufferError as error:
    assert "read-only" in str(error)
else:
    raise AssertionError("a writable alias of read-only memory")

def from_dlpack(x):
    raise RuntimeError("no such type")
cupy.from_dlpack = from_dlpack
try:
    bridge.to_cupy(source)
except BufferError as error:
    assert "no such type" in str(error)
else:
    raise AssertionError("not refused")
"""

ABSENT = """
import sys
sys.modules["cupy"] = sys.modules["jax"] = sys.modules["tensorflow"] = None
import bridge
for name in ("cupy", "jax", "tensorflow"):
    for call in (getattr(bridge, f"to_{name}"), lambda x: bridge.convert(x, name)):
        try:
            call(b"abc")
        except ImportError as error:
            assert f"pip install {name}" in str(error)
        else:
            raise AssertionError(name)
"""


def test_arrays_of_cupy_come_back_as_themselves() -> None:
    run_python(STAND_IN + ARRAYS)


def test_host_memory_is_copied() -> None:
    run_python(STAND_IN + FROM_THE_HOST)


def test_device_memory_is_shared() -> None:
    run_python(STAND_IN + ON_THE_DEVICE)


def test_frameworks_that_are_not_there_are_named() -> None:
    run_python(ABSENT)
