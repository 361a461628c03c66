# SPDX-License-Identifier: Apache-2.0
"""Creating caffe2.Tensors of values, and reinitializing existing ones."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.at import Tensor as AtTensor
from bridge.at.factories import resolved
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.c10.resizing import resize_allocated
from bridge.caffe2.tensor.construct import from_values
from bridge.caffe2.tensor.empty import empty as empty
from bridge.caffe2.tensor.tensor import Tensor


def ReinitializeTensor(
    t: Tensor, dims: Any, options: Any = None, *, dtype: Any = None, device: Any = None
) -> None:
    """Set the sizes, type and device of `t` in place, and allocate memory, not initialized.

    If `t` has the type and device already, it is resized and keeps its buffer if that is large
    enough. Otherwise, or if it was undefined, it gets a new TensorImpl; wrappers of the former one
    keep it, in the new sizes.

    Raises EnforceNotMet: `t` is not a caffe2.Tensor (also a TypeError), or negative sizes.
    MemoryError. `t` is then unchanged.
    Follows caffe2::ReinitializeTensor, caffe2/core/tensor.cc, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> t = caffe2.empty([2, 3])
    >>> address = t.raw_data()
    >>> caffe2.ReinitializeTensor(t, [3, 2])
    >>> t, t.raw_data() == address
    (caffe2.Tensor(sizes=[3, 2], dtype=float32, device='cpu'), True)
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
            # Other wrappers of the TensorImpl see it resized, as in Caffe2.
            t.Resize(sizes)
        t.swap(fresh)


def ReinitializeAndCopyFrom(t: Tensor, options: Any, src: Any) -> None:
    """Make `t` a copy of `src`, a caffe2.Tensor or at.Tensor, on the device of `options`.

    It has the sizes and the type of `src`. Raises EnforceNotMet: `t` has another type already, or
    `src` is not a tensor, not contiguous, or not allocated. MemoryError.
    Follows caffe2::ReinitializeAndCopyFrom, caffe2/core/tensor.cc, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> t = caffe2.Tensor()
    >>> caffe2.ReinitializeAndCopyFrom(t, "cpu", caffe2.Tensor([2], [1, 2]))
    >>> t.numpy().tolist()
    [1, 2]
    """
    caller = "ReinitializeAndCopyFrom"
    _require(t, caller)
    chosen = resolved(options)
    if t.defined() and t.GetDevice() == chosen.device():
        if t.dtype() and isinstance(src, Tensor | AtTensor) and t.dtype() is not src.dtype():
            raise EnforceNotMet(
                f"The tensor is of {t.dtype()} and the source of {src.dtype()}. Pass a new "
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
    """Return a new tensor on the CPU with a copy of `values`, of type `T` or NumPy's for them.

    Raises EnforceNotMet: the numbers of values and elements differ (also a ValueError), or
    they do not fit the type. MemoryError.
    Follows caffe2::TensorCPUFromValues, caffe2/core/tensor.h, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> caffe2.TensorCPUFromValues([2, 2], [1, 2, 3, 4], "float32").numpy().tolist()
    [[1.0, 2.0], [3.0, 4.0]]
    """
    return Tensor._wrap(from_values(dims, values, T, "TensorCPUFromValues"))


def _require(t: Any, caller: str) -> None:
    if not isinstance(t, Tensor):
        raise EnforceTypeError(
            f"A caffe2.Tensor is reinitialized in place, not {type(t).__name__}.", caller
        )
