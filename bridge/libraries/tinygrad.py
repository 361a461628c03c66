# SPDX-License-Identifier: Apache-2.0
"""tinygrad, whose tensors are computed when they are needed, into buffers of a device."""

from __future__ import annotations

from typing import Any

from bridge.exchange.library_fit import fit, plain_array, refuse_types
from bridge.exchange.registry import register

# Types that NumPy lacks, by tinygrad's names.
_TYPES = {
    "bfloat16": "bfloat16",
    "fp8e4m3": "float8_e4m3fn",
    "fp8e5m2": "float8_e5m2",
    "fp8e4m3fnuz": "float8_e4m3fnuz",
    "fp8e5m2fnuz": "float8_e5m2fnuz",
}
# Devices whose buffers are host memory.
_HOST = ("CPU", "NPY", "PYTHON")


class _Buffer:
    """The memory of a buffer of tinygrad, which it keeps alive."""

    def __init__(self, buffer: Any, array: Any) -> None:
        self.buffer = buffer
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.array


def _import(x: Any) -> Any:
    """Return the array of a tensor's buffer on the host; computes the tensor first."""
    import numpy

    if isinstance(x.device, tuple):
        raise BufferError(
            f"The tinygrad tensor is sharded over {len(x.device)} devices. Use x.to(device)."
        )
    if 0 in x.shape:
        return numpy.empty(x.shape, _numpy_type(x.dtype))
    if x.device is None:  # a constant, which has no memory
        return x.numpy()
    if str(x.device).partition(":")[0] not in _HOST:
        raise BufferError(f"The tinygrad tensor is on {x.device}. Use x.to('CPU').")
    buffer = x.contiguous().realize()._buffer()
    memory = numpy.frombuffer(buffer.as_memoryview(allow_zero_copy=True), numpy.uint8)
    array = memory.view(_numpy_type(x.dtype)).reshape(x.shape)
    return _Buffer(buffer, array)


def _numpy_type(dtype: Any) -> Any:
    import numpy
    from tinygrad.dtype import _to_np_dtype, dtypes

    for name, numpy_name in _TYPES.items():
        if dtype == getattr(dtypes, name, None):
            import ml_dtypes

            return numpy.dtype(getattr(ml_dtypes, numpy_name))
    return numpy.dtype(_to_np_dtype(dtype))


def _export(tensor: Any) -> Any:
    """Return a tensor of the device NPY, whose buffers are NumPy arrays, on the same memory.

    tinygrad computes on others: ``x.to("CPU")`` copies it there.
    """
    import tinygrad

    refuse_types(tensor, "tinygrad", "complex64", "complex128")
    array = plain_array(fit(tensor, writable=True, row_major=True), "tinygrad")
    # (of an array without dimensions it would make a constant)
    return tinygrad.Tensor(array.reshape(-1), device="NPY").reshape(array.shape)


register("tinygrad", types=("tinygrad.Tensor",), importer=_import, exporter=_export)
