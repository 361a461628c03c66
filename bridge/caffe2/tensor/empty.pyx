# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""caffe2.empty, compiled, since operators and programs create their outputs with it."""

from bridge.c10.device cimport Device
from bridge.c10.dims cimport Dims, parse_dims
from bridge.c10.tensor_impl cimport allocated
from bridge.c10.type_meta cimport TypeMeta, as_type, float32_type
from bridge.caffe2.tensor.tensor cimport wrap
from bridge.dlpack.abi cimport DL_CPU

from bridge.at.factories import resolved
from bridge.c10.options import TensorOptions as _TensorOptions

cdef object _options_class = _TensorOptions

# pyi: from bridge.caffe2.tensor.tensor import Tensor


def empty(
    dims: Dims,
    options: OptionsLike | None = None,
    *,
    dtype: TypeLike | None = None,
    device: DeviceLike | None = None,
) -> Tensor:
    """Return a new, allocated tensor; POD elements are not set, others are constructed.

    float32 on the CPU, unless `options` (or `dtype` and `device`) specify others.

    Raises EnforceNotMet: negative sizes, or unknown options. MemoryError.
    Follows caffe2::empty, caffe2/core/tensor.cc, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> caffe2.empty([2, 3], "int32")
    caffe2.Tensor(sizes=[2, 3], dtype=int32, device='cpu')
    """
    cdef Dims sizes = parse_dims(dims, "empty")
    cdef TypeMeta meta = None
    cdef Device where
    if dtype is None and device is None:
        if options is None:
            meta = float32_type
        elif type(options) is _options_class:
            where = options._device
            if not options._pinned_memory and (where is None or where.c_type == DL_CPU):
                meta = float32_type if options._dtype is None else options._dtype
        else:
            try:
                meta = as_type(options)
            except (TypeError, ValueError):
                pass                # not an element type, but perhaps a device
    if meta is not None:
        return wrap(allocated(sizes.data, sizes.n, meta, DL_CPU, 0, "empty"))
    chosen = resolved(options, dtype, device)
    where = chosen.device()
    return wrap(allocated(
        sizes.data, sizes.n, chosen.dtype(), where.c_type, where.c_index, "empty"))
