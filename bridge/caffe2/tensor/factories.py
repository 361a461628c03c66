# SPDX-License-Identifier: Apache-2.0
"""New caffe2.Tensors, and old ones made to fit again."""

from __future__ import annotations

from bridge.at import Tensor as AtTensor
from bridge.at.factories import resolved
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.c10.resizing import resize_allocated
from bridge.caffe2.tensor.construct import from_values
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ReinitializeAndCopyFrom", "ReinitializeTensor", "TensorCPUFromValues", "empty"]


def empty(dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None) -> Tensor:
    """A new tensor, allocated and typed; POD elements are not set, others constructed.

    float32 on the CPU unless options say otherwise.
    Raises EnforceNotMet: negative sizes, options that name nothing. MemoryError.
    Follows caffe2::empty, caffe2/core/tensor.cc, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> caffe2.empty([2, 3], "int32")
    caffe2.Tensor(sizes=[2, 3], dtype=int32, device='cpu')
    """
    chosen = resolved(options, dtype, device)
    tensor = Tensor(dims, chosen.device())
    tensor.raw_mutable_data(chosen.dtype())
    return tensor


def ReinitializeTensor(
    t: Tensor, dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None
) -> None:
    """Have `t` be of these sizes, type and device, in place.

    Where type and device fit already it is resized, and keeps its buffer if that is
    large enough; otherwise, and if it was undefined, `t` gets a new TensorImpl, and who
    shared the old one keeps it (in the new sizes). Elements are not set.

    Raises EnforceNotMet: `t` is no caffe2.Tensor, negative sizes. MemoryError; `t` is
    as it was then.
    Follows caffe2::ReinitializeTensor, caffe2/core/tensor.cc, PyTorch 1.8.1.
    """
    _require(t, "ReinitializeTensor")
    chosen = resolved(options, dtype, device)
    sizes = Tensor(dims, "cpu").sizes()
    if not t.defined() or t.GetDevice() != chosen.device():
        t.swap(empty(sizes, chosen))
    elif t.dtype() is chosen.dtype():
        if sizes == t.sizes():
            t.raw_mutable_data()
        else:
            resize_allocated(t.unsafeGetTensorImpl(), sizes, "ReinitializeTensor")
    else:
        fresh = empty(sizes, chosen)
        if sizes != t.sizes():
            # Who shares the TensorImpl that `t` gives up sees it resized, as upstream.
            t.Resize(sizes)
        t.swap(fresh)


def ReinitializeAndCopyFrom(t: Tensor, options: Any, src: Any) -> None:
    """Have `t` be on the device of `options`, and a copy of `src`.

    The type is that of `src`. Raises EnforceNotMet: `t` has another type already, or
    `src` is no tensor, not contiguous, or without content.
    Follows caffe2::ReinitializeAndCopyFrom, caffe2/core/tensor.cc, PyTorch 1.8.1.
    """
    caller = "ReinitializeAndCopyFrom"
    _require(t, caller)
    chosen = resolved(options)
    if t.defined() and t.GetDevice().type == chosen.device().type:
        if t.dtype() and isinstance(src, Tensor | AtTensor) and t.dtype() is not src.dtype():
            raise EnforceNotMet(
                f"The tensor is of {t.dtype()} and the source of {src.dtype()}. Give a new "
                "caffe2.Tensor() to copy into.",
                caller,
                condition="t.dtype() == src.dtype()",
            )
        t.CopyFrom(src)
        return
    fresh = Tensor(chosen.device())
    fresh.CopyFrom(src)
    t.swap(fresh)


def TensorCPUFromValues(dims: Any, values: Any, T: Any = None) -> Tensor:
    """A new tensor on the CPU with a copy of `values`, of NumPy's type for them or `T`.

    Raises EnforceNotMet: there are more or fewer values than the sizes make elements.
    Follows caffe2::TensorCPUFromValues, caffe2/core/tensor.h, PyTorch 1.8.1.
    """
    return Tensor._wrap(from_values(dims, values, T, "TensorCPUFromValues"))


def _require(t: Any, caller: str) -> None:
    if not isinstance(t, Tensor):
        raise EnforceTypeError(
            f"A caffe2.Tensor is reinitialised in place, not {type(t).__name__}.", caller
        )
