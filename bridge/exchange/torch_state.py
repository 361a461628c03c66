# SPDX-License-Identifier: Apache-2.0
"""Whether a torch tensor has memory of its own, and if not, why: by torch's own methods.

Loaded with the first tensor that takes a second look. A subclass is not asked: callers that
look at one wrap these calls in ``torch._C.DisableTorchFunctionSubclass()``.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge.exchange.refusal import reason_of

UNDEFINED = "The tensor is undefined: it has no type, device or memory."
_BITS = "torch's {dtype} is bits without a meaning, which DLPack lacks. Use view(torch.uint8)."


def _is_bits(dtype: torch.dtype) -> bool:
    return str(dtype).startswith("torch.bits")


def is_placeholder(tensor: Any) -> bool:
    """Return whether it is a wrapper of a torch.func transform or of tracing."""
    return bool(
        torch._C._functorch.is_functorch_wrapped_tensor(tensor)
        or torch._is_functional_tensor(tensor)
    )


def plain_of_read_only(tensor: Any) -> Any:
    """Return a plain torch tensor of the memory of a read-only one, the bridge's or torch's own.

    It requires grad if that does.
    """
    if hasattr(type(tensor), "_is_read_only"):
        plain = tensor._plain
        return plain.detach().requires_grad_() if tensor.requires_grad else plain
    with torch._C.DisableTorchFunctionSubclass():
        return tensor.as_subclass(torch.Tensor)


def is_undefined(tensor: Any) -> bool:
    """Return whether nothing is left of it: the collector cleared a cycle that it was in."""
    try:
        tensor.device  # noqa: B018
    except RuntimeError:
        return True
    return False


def is_one_block(tensor: Any) -> bool:
    """Return whether sizes and strides describe its elements, in one block of memory."""
    return not (
        is_undefined(tensor)
        or is_placeholder(tensor)
        or tensor.is_nested
        or tensor.layout != torch.strided
        or tensor.device.type == "meta"
    )


def is_without_memory(tensor: Any) -> bool:
    """Return whether it is of a subclass with its own dispatch and has no memory of its own.

    Raises what torch raises if the tensor has no storage.
    """
    cls = type(tensor)
    if cls is torch.Tensor or cls is torch.nn.Parameter:
        return False
    if cls.__torch_dispatch__ is torch.Tensor.__torch_dispatch__:
        return False
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        return True
    address, nbytes = tensor.data_ptr(), tensor.untyped_storage().nbytes()
    return bool(tensor.numel() > 0 and (address == 0 or nbytes == 0))


def exceeds_storage(tensor: Any) -> bool:
    """Return whether it exceeds its storage, which torch's own clone() does not check."""
    if (
        not is_one_block(tensor)
        or type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
        or tensor.numel() == 0
    ):
        return False
    last = tensor.storage_offset() + sum(
        (size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True)
    )
    return bool((last + 1) * tensor.dtype.itemsize > tensor.untyped_storage().nbytes())


def require_initialised(tensor: Any) -> None:
    """Refuse a lazy module's parameter or buffer, with BufferError."""
    if torch.nn.parameter.is_lazy(tensor):
        raise BufferError(
            "The parameter or buffer is uninitialised: it has neither sizes nor memory yet."
        )


def require_whole_bytes(tensor: Any) -> None:
    """Refuse elements of fewer than eight bits, which torch's DLPack exports as bytes."""
    dtype = tensor.dtype
    if _is_bits(dtype):
        raise BufferError(_BITS.format(dtype=dtype))
    if dtype.itemsize != 1 or dtype in (torch.uint8, torch.int8):
        return
    if str(dtype).partition(".")[2].startswith(("int", "uint")):
        raise BufferError(
            f"torch's {dtype} is a type of fewer than eight bits, which its DLPack "
            "exports as whole bytes. View it as torch.uint8 or torch.int8 first."
        )


# Subclasses of torch.Tensor that hold other tensors: what they are, and the calls that give one.
_SUBCLASSES = {
    "DTensor": "is distributed over processes. Use tensor.to_local() for the part of this process, "
    "or tensor.full_tensor() for all of it",
    "AsyncCollectiveTensor": "is still on its way from other processes. Use tensor.wait()",
    "MaskedTensor": "has a mask besides its values. Use tensor.get_data() and "
    "tensor.get_mask(), or tensor.to_tensor(value)",
}
_FAKE = (
    "A fake tensor has sizes and no data. torch.export traces the bridge's functions under "
    "strict=True; what needs values goes into a custom operator (torch.library.custom_op)."
)


def why_not_subclass(tensor: Any) -> str | None:
    """Return why a subclass that holds other tensors has no memory; None: it is none of those."""
    cls = type(tensor)
    names = [base.__name__ for base in cls.__mro__]
    if "FakeTensor" in names:
        return _FAKE
    for name, text in _SUBCLASSES.items():
        if name in names:
            article = "An" if cls.__name__[0] in "AEIOU" else "A"
            return f"{article} {cls.__name__} {text}."
    own = cls.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__
    if own and cls.dequantize is not torch.Tensor.dequantize:
        return (
            f"A {cls.__name__} is quantised, and its values are computed. Use tensor.dequantize()."
        )
    if not torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        return None
    parts = ", ".join(f"tensor.{name}" for name in tensor.__tensor_flatten__()[0])
    return f"A {cls.__name__} consists of other tensors. Convert them: {parts}."


def why_not(tensor: Any, error: BaseException | None) -> str:
    """Return why a tensor has no memory to exchange; `error` is what torch raised."""
    reason = why_not_subclass(tensor)
    if reason is not None:
        return reason
    with torch._C.DisableTorchFunctionSubclass():
        if is_undefined(tensor):
            return UNDEFINED
        if tensor.is_nested:
            return "A nested tensor consists of several tensors; exchange each of tensor.unbind()."
        if tensor.layout != torch.strided:
            return (
                f"A tensor of layout {tensor.layout} is not one block of memory. "
                "Use tensor.to_dense()."
            )
        if tensor.is_quantized:
            return (
                "A quantized tensor's numbers mean nothing without its scale. Use "
                "tensor.dequantize() or tensor.int_repr()."
            )
        if tensor.device.type == "meta":
            return "A meta tensor has sizes and no data."
    if _is_bits(tensor.dtype):
        return _BITS.format(dtype=tensor.dtype)
    if is_placeholder(tensor):
        return (
            "Inside torch.func transforms (vmap, grad, functionalize) and tracing a tensor "
            "stands for others and has no memory of its own. Convert outside of them."
        )
    cause = f" ({reason_of(error)})" if error is not None else ""
    return (
        f"The torch tensor has no memory to exchange{cause}: its storage is missing, was "
        "freed or resized, or torch's DLPack knows neither its type nor its device."
    )
