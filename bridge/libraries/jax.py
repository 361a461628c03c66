# SPDX-License-Identifier: Apache-2.0
"""JAX, whose arrays are immutable, row-major and aligned to 64 bytes.

Import: by the buffer protocol, which waits for the values and protects the array against deletion
and donation, in a quarter of the time of ``__dlpack__``; arrays without a buffer (bfloat16, float8,
on GPUs) by ``__dlpack__``.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.dlpack
import jax.numpy

from bridge.c10.copy import reported_copy, require_copy
from bridge.c10.reports import ASKED, report_copy
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.conversion import export_source, remaining_copy, row_major
from bridge.exchange.dlpack_capsule import DLPackProducer
from bridge.exchange.dlpack_producers import import_by_dlpack
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.numpy import export_array
from bridge.exchange.refusal import reason_of
from bridge.exchange.registry import register

# In bytes. XLA shares memory of the CPU with this alignment and copies all other.
ALIGNMENT = 64
_WIDE = ("int64", "uint64", "float64", "complex128")
# Bits of types that JAX packs or does not export by DLPack. NumPy, through which they are
# converted, has a byte for each.
_NARROW = {"int2": 2, "uint2": 2, "int4": 4, "uint4": 4, "float4_e2m1fn": 4}
# jax adds its settings as attributes at run time
_config: Any = jax.config


def import_(x: Any, copy: bool | None) -> TensorImpl | None:
    """Return the TensorImpl of a ``jax.Array``; read-only.

    Raises BufferError: a tracer, a deleted or sharded array, random keys.
    """
    if isinstance(x, jax.core.Tracer):
        raise BufferError(
            f"Inside jit, grad and vmap a {type(x).__name__} has no values "
            "yet. Convert outside of them, or call out with jax.pure_callback."
        )
    if not isinstance(x, jax.Array):
        return None
    if jax.numpy.issubdtype(x.dtype, jax.dtypes.extended):
        raise BufferError(
            f"Elements of {x.dtype} are not plain memory. For random keys use "
            "jax.random.key_data(keys)."
        )
    if x.is_deleted():
        raise BufferError("The JAX array was deleted or donated, so it has no memory any more.")
    devices = x.devices()
    if len(devices) != 1:
        raise BufferError(
            f"The JAX array is sharded over {len(devices)} devices. Take one of "
            "x.addressable_shards, or gather it with jax.device_put(x, device)."
        )
    if x.dtype.name in _NARROW:
        return _widened(x, copy)
    on_host = next(iter(devices)).platform == "cpu"
    return import_by_dlpack(x, readonly=True, on_host=on_host)


def _widened(x: Any, copy: bool | None) -> TensorImpl:
    if x.size * _NARROW[x.dtype.name] % 8:
        raise BufferError(f"{x.size} elements of {x.dtype.name} do not fill whole bytes.")
    if not x.size:
        return import_tensor(jax.device_get(x))
    reason = f"JAX packs {x.dtype.name}, and here each takes a byte"
    return reported_copy(import_tensor(jax.device_get(x)), reason, "from_dlpack", copy)


def export(x: Any, copy: bool | None) -> Any:
    """Return a ``jax.Array`` of the memory of `x`; see bridge.to_jax."""
    if isinstance(x, jax.Array):
        return _copied(x) if copy is True else x
    impl = export_source(x, copy)
    name = impl.dtype().name
    if name in _WIDE and not _config.jax_enable_x64:
        raise BufferError(
            f"JAX would truncate {name} to 32 bits while jax_enable_x64 is off. Turn it on with "
            "jax.config.update('jax_enable_x64', True), or convert the tensor first."
        )
    try:
        if name in _NARROW:
            return _narrowed(impl, copy)
        copy = remaining_copy(x, impl, copy)
        return jax.dlpack.from_dlpack(
            DLPackProducer(row_major(impl, copy, ALIGNMENT), immutable=True)
        )
    except (BufferError, MemoryError):
        raise
    except Exception as error:
        raise BufferError(
            f"JAX does not take a tensor of {name} on {impl.device()}: {reason_of(error)}. "
            "Convert it first, as with bridge.asarray(x, dtype='float32', device='cpu')."
        ) from error


def place(x: Any, like: Any, copy: bool | None) -> Any:
    """Return `x` on the device of `like`: to DLPack, all devices of the host are one.

    Raises BufferError: that is a copy and `copy` is False, or `like` is on several devices.
    """
    device = _device_of(like)
    if x.devices() == {device}:
        return x
    require_copy(copy, x.nbytes, f"it is on {x.devices()} and goes to {device}")
    return jax.device_put(x, device)


def _device_of(like: Any) -> Any:
    devices = like.devices()
    if len(devices) != 1:
        raise BufferError(
            f"like= is sharded over {len(devices)} devices. Give one of like.addressable_shards, "
            "or shard the result with jax.device_put(x, like.sharding)."
        )
    return next(iter(devices))


def _copied(x: Any) -> Any:
    report_copy(x.nbytes, ASKED)
    try:
        return x.copy()
    except RuntimeError as error:
        raise BufferError(f"The JAX array cannot be copied: {reason_of(error)}") from error


def _narrowed(impl: TensorImpl, copy: bool | None) -> Any:
    if impl.numel():
        reason = f"JAX packs {impl.dtype()}, and here each takes a byte"
        require_copy(copy, impl.numel(), reason)
    return jax.numpy.array(export_array(impl, "to_jax"))


register(
    "jax",
    types=("jax.Array", "jax.*", "jaxlib.*"),
    importer=import_,
    exporter=export,
    import_takes_copy=True,
    export_takes_copy=True,
    prefers_buffer=True,
    placer=place,
)
