# SPDX-License-Identifier: Apache-2.0
"""The memory of tensors that the bridge must import to look at: DLPack producers, buffers, …"""

from __future__ import annotations

import sys
from typing import Any

from bridge.c10.errors import EnforceNotMet
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.arrow_import import is_reader
from bridge.exchange.fresh_memory import FreshMemoryError, ScatteredMemoryError
from bridge.exchange.import_tensor import import_tensor
from bridge.see.impl_memory import impl_memory, owner_links
from bridge.see.tensor_memory import Block, TensorMemory, address_space
from bridge.see.type_names import type_name

# Element types of TensorFlow without plain memory; its DLPack export of them aborts the process.
_OPAQUE = ("string", "resource", "variant")
# Classes of placeholders that replace tensors while a function is traced.
_PLACEHOLDERS = {"Tracer", "SymbolicTensor", "KerasTensor"}


def producer_memory(x: Any) -> TensorMemory:
    """Return the memory of any tensor that the bridge can import; the import is temporary.

    Raises TypeError: `x` is not a tensor.
    """
    kind = type_name(x)
    opaque = kind.startswith("tf.") and getattr(_dtype_of(x), "name", None) in _OPAQUE
    refusal: BufferError | None = None
    impl = None
    if _has_no_elements(x):
        refusal = BufferError(f"A {kind} has no memory here: it was deleted, or is being traced.")
    elif is_reader(x):
        refusal = BufferError(f"A {kind} is read once, so its memory is not looked at.")
    elif not opaque:
        try:
            impl = _imported(x)
        except BufferError as error:
            refusal = error
    if impl is None:
        return _described(x, kind, refusal)
    memory = impl_memory(impl)
    memory.keep = (memory.keep, x)
    memory.chain = [{"kind": kind, "sizes": memory.sizes, "dtype": memory.dtype}]
    memory.owner = kind
    if isinstance(x, memoryview):
        memory.chain.extend(owner_links(x.obj))
        memory.set_owner()
    return memory


def _imported(x: Any) -> TensorImpl:
    """Return the TensorImpl of `x`, without a copy; a tensor that requires grad is detached.

    Raises BufferError: its memory cannot be shared.
    """
    try:
        return import_tensor(x, None, False)
    except BufferError:
        inner: Any = getattr(x, "value", None) if "Variable" in type(x).__name__ else x
        if not callable(getattr(type(inner), "detach", None)):
            raise
        detached = inner.detach()
        if detached is x:
            raise
        return import_tensor(detached, None, False)


def _described(x: Any, kind: str, refusal: BufferError | None) -> TensorMemory:
    """Return sizes, type and device that a tensor reports, if its memory is not accessible."""
    memory = TensorMemory()
    if refusal is None:
        memory.note = f"A {kind} of {x.dtype.name} has no plain memory."
        memory.unknown = True
    else:
        memory.note = refusal.message if isinstance(refusal, EnforceNotMet) else str(refusal)
        memory.unknown = not (_has_no_elements(x) or isinstance(refusal, FreshMemoryError))
    try:
        shape = getattr(x, "shape", None)  # a released memoryview has none
        memory.sizes = [int(n) for n in shape] if shape is not None else [len(x)]
    except (TypeError, ValueError, RuntimeError, AttributeError):
        memory.sizes = None
    if isinstance(refusal, ScatteredMemoryError):
        memory.blocks = [Block("host", first, (n,), (1,), 1) for first, n in refusal.blocks]
        memory.unknown = False
    elif memory.unknown:
        _find_packed(x, memory)
    dtype = _dtype_of(x)
    memory.dtype = None if dtype is None else str(getattr(dtype, "name", dtype))
    if isinstance(refusal, FreshMemoryError):
        _describe_copy(memory, x)
    memory.chain = [{"kind": kind, "sizes": memory.sizes, "dtype": memory.dtype}]
    memory.owner = kind
    return memory


def _describe_copy(memory: TensorMemory, x: Any) -> None:
    """Set sizes, type and device of the copies that `x` hands out, as far as they are known."""
    try:
        impl = import_tensor(x, None, None)
    except (BufferError, TypeError):
        return
    memory.sizes = list(impl.sizes())
    memory.dtype, memory.itemsize = impl.dtype().name, impl.dtype().itemsize
    memory.device = str(impl.device())


def _dtype_of(x: Any) -> Any:
    try:
        return getattr(x, "dtype", getattr(x, "type", None))
    except (TypeError, ValueError, AttributeError):  # a type that the library has no name for
        return None


def _find_packed(x: Any, memory: TensorMemory) -> None:
    """Set the blocks of a JAX array of packed elements, which can be located but not imported."""
    array_class: Any = getattr(sys.modules.get("jax"), "Array", ())
    if memory.sizes is not None and 0 in memory.sizes:
        memory.unknown = False
    elif isinstance(x, array_class) and len(x.devices()) == 1:
        device = next(iter(x.devices()))
        if device.platform == "cpu":
            begin, nbytes = x.unsafe_buffer_pointer(), x.on_device_size_in_bytes()
            memory.blocks = [Block(address_space("cpu"), begin, (nbytes,), (1,), 1)]
            memory.unknown = False


def _has_no_elements(x: Any) -> bool:
    """Return whether `x` is a tracing placeholder or a deleted array."""
    if {cls.__name__ for cls in type(x).__mro__} & _PLACEHOLDERS:
        return True
    # only JAX's is a question; others answer to any name
    deleted = getattr(type(x), "is_deleted", None)
    return callable(deleted) and deleted(x) is True
