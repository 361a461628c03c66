# SPDX-License-Identifier: Apache-2.0
"""Find the memory of a torch tensor, of any layout and state, by torch's own methods.

No import through DLPack: that refuses what requires grad and what has a lazy bit, and both lie in
memory like any other. Asking torch for a storage makes a Python object for it and no more.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge.exchange.torch_state import is_one_block, is_placeholder
from bridge.see.memory import Block, Memory, extent, space_of

__all__ = ["of_torch", "reach_of"]

# What the parts of a sparse tensor are called that have memory of their own.
_PARTS: dict[Any, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def of_torch(tensor: Any) -> Memory:
    """Find the memory of a torch tensor."""
    memory = Memory()
    memory.keep = tensor
    kind = type(tensor)
    link: dict[str, Any] = {"kind": f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"}
    memory.chain = [link]
    memory.owner = link["kind"]
    with torch._C.DisableTorchFunctionSubclass():
        memory.dtype = link["dtype"] = str(tensor.dtype).partition(".")[2]
        memory.itemsize = tensor.dtype.itemsize
        memory.device = _name_of(tensor.device)
        if torch.nn.parameter.is_lazy(tensor):
            memory.note = "The parameter or buffer has neither sizes nor memory yet."
            return memory
        link["requires_grad"] = tensor.requires_grad
        if not tensor.is_nested:
            memory.sizes = link["sizes"] = [int(n) for n in tensor.shape]
        parts = _parts_of(tensor)
        if parts is not None:
            return _of_parts(memory, parts, _called(tensor))
        memory.note = _why_none(tensor)
        if memory.note is None:
            memory.note, memory.unknown = _why_unknown(tensor)
        if memory.note is None:
            _place(memory, tensor)
    return memory


def shape_of(tensor: Any) -> tuple[int, ...] | None:
    """Return the sizes of a torch tensor without asking a subclass; None where it has none."""
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return tuple(tensor.shape)
        except (RuntimeError, ValueError):
            return None


def _place(memory: Memory, tensor: Any) -> None:
    link = memory.chain[0]
    link["strides"] = list(tensor.stride())
    memory.strides = [step * memory.itemsize for step in tensor.stride()]
    memory.readonly = False
    bits = (("conjugate", tensor.is_conj()), ("negative", tensor.is_neg()))
    lazy = " and ".join(name for name, there in bits if there)
    if lazy:
        link["text"] = f"it has torch's lazy {lazy} bit, so its memory holds other values"
    storage = tensor.untyped_storage()
    begin, nbytes = storage.data_ptr(), storage.nbytes()
    memory.chain.append(
        {
            "kind": "torch storage",
            "address": begin,
            "nbytes": nbytes,
            "device": memory.device,
            # less the Python object that was made to ask
            "use_count": torch._C._storage_Use_Count(storage._cdata) - 1
            if hasattr(torch._C, "_storage_Use_Count")
            else None,
        }
    )
    memory.owner = "torch storage"
    assert memory.sizes is not None
    space = space_of(str(memory.device))
    block = Block(space, tensor.data_ptr(), memory.sizes, memory.strides, memory.itemsize)
    low, high = extent(block)
    if low < high and not begin <= low <= high <= begin + nbytes:
        memory.note = (
            f"The tensor reaches to byte {high - begin} of a storage of {nbytes}: the storage was "
            "resized under it."
        )
        return
    memory.buffer = (space, begin, begin + nbytes)
    memory.found(tensor.data_ptr())


def _called(tensor: Any) -> str:
    if tensor.layout in _PARTS:
        return f"tensor of layout {tensor.layout}"
    return "nested tensor" if tensor.is_nested else type(tensor).__name__


def _of_parts(memory: Memory, parts: list[Any], what: str) -> Memory:
    """Take the memory of several tensors together."""
    memory.note = f"A {what} is not one block of memory: it is made of {len(parts)} tensors."
    for part in parts:
        found = of_torch(part)
        memory.blocks += found.blocks
        memory.unknown = memory.unknown or found.unknown
        memory.chain += found.chain
    memory.readonly = False
    return memory


def _parts_of(tensor: Any) -> list[Any] | None:
    """Return the tensors that `tensor` is made of; None where it is made of none."""
    if tensor.layout in _PARTS:
        return [getattr(tensor, name)() for name in _PARTS[tensor.layout]]
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        return [getattr(tensor, name) for name in names]
    if tensor.is_nested:
        return list(tensor.unbind())
    return None


def _why_none(tensor: Any) -> str | None:
    """Say why a tensor has no memory of its own; None where it has."""
    if is_placeholder(tensor):
        return "Inside torch.func transforms and tracing a tensor stands for others."
    if any(cls.__name__ == "FakeTensor" for cls in type(tensor).__mro__):
        return "A fake tensor has sizes and no data."
    if tensor.device.type == "meta":
        return "A meta tensor has sizes and no data."
    return None


def _why_unknown(tensor: Any) -> tuple[str | None, bool]:
    """Say why a tensor's memory cannot be told, and whether it has some; None if it can."""
    if tensor.layout != torch.strided:
        return f"The memory of a tensor of layout {tensor.layout} is not told.", True
    try:
        address = tensor.data_ptr()
        tensor.untyped_storage()
    except (RuntimeError, ValueError) as error:
        return f"torch does not tell where the memory is: {error}", True
    if address == 0 and tensor.numel():
        return "The tensor has no memory: its storage was freed or resized.", False
    return None, False


def _name_of(device: Any) -> str:
    """Name a device as the bridge does."""
    return str(device.type if device.index is None or device.type == "cpu" else device)


def reach_of(tensor: Any) -> tuple[str, int, int] | None:
    """Return the (space, first byte, byte after the last) of a plain tensor's elements.

    None for any other: this is for looking through all that there are.
    """
    if type(tensor).__torch_dispatch__ is not torch.Tensor.__torch_dispatch__:
        return None
    with torch._C.DisableTorchFunctionSubclass():
        if torch.nn.parameter.is_lazy(tensor) or not is_one_block(tensor):
            return None
        try:
            address = tensor.data_ptr()
        except RuntimeError:
            return None
        itemsize = tensor.dtype.itemsize
        steps = [step * itemsize for step in tensor.stride()]
        space = space_of(_name_of(tensor.device))
        low, high = extent(Block(space, address, tensor.shape, steps, itemsize))
    return (space, low, high) if address and low < high else None
