# SPDX-License-Identifier: Apache-2.0
"""The memory of torch tensors of any layout and state.

It is read by torch's own methods, not by DLPack, which rejects tensors that require grad or have a
lazy bit although these have memory like any other.
"""

from __future__ import annotations

from typing import Any

import torch

from bridge.exchange.torch_api import is_read_only_class
from bridge.exchange.torch_state import (
    UNDEFINED,
    is_one_block,
    is_placeholder,
    is_undefined,
    plain_of_read_only,
    why_not_subclass,
)
from bridge.see.tensor_memory import Block, TensorMemory, address_space, byte_range

# The methods that return the parts of a sparse tensor.
_PARTS: dict[Any, tuple[str, ...]] = {
    torch.sparse_coo: ("_indices", "_values"),
    torch.sparse_csr: ("crow_indices", "col_indices", "values"),
    torch.sparse_csc: ("ccol_indices", "row_indices", "values"),
    torch.sparse_bsr: ("crow_indices", "col_indices", "values"),
    torch.sparse_bsc: ("ccol_indices", "row_indices", "values"),
}


def torch_memory(tensor: Any) -> TensorMemory:
    """Return the memory of a torch tensor."""
    if is_read_only_class(type(tensor)):
        memory = torch_memory(plain_of_read_only(tensor))
        memory.keep, memory.readonly = tensor, True
        memory.chain[0].update(kind=_kind(tensor), readonly=True)
        return memory
    memory = TensorMemory()
    memory.keep = tensor
    link: dict[str, Any] = {"kind": _kind(tensor)}
    memory.chain = [link]
    memory.owner = link["kind"]
    with torch._C.DisableTorchFunctionSubclass():
        if is_undefined(tensor):
            memory.note = UNDEFINED
            return memory
        memory.dtype = link["dtype"] = str(tensor.dtype).partition(".")[2]
        memory.itemsize = tensor.dtype.itemsize
        memory.device = _device_name(tensor.device)
        if torch.nn.parameter.is_lazy(tensor):
            memory.note = "The parameter or buffer has neither sizes nor memory yet."
            return memory
        link["requires_grad"] = tensor.requires_grad
        if not tensor.is_nested:
            memory.sizes = link["sizes"] = [int(n) for n in tensor.shape]
        parts = _parts_of(tensor)
        if parts is not None:
            return _of_parts(memory, parts, _description(tensor))
        memory.note = _why_no_memory(tensor)
        if memory.note is None:
            memory.note, memory.unknown = _why_unknown(tensor)
        if memory.note is None:
            _place(memory, tensor)
    return memory


def _kind(tensor: Any) -> str:
    """Return the class with the package that it is of."""
    kind = type(tensor)
    return f"{kind.__module__.partition('.')[0]}.{kind.__qualname__}"


def torch_sizes(tensor: Any) -> tuple[int, ...] | None:
    """Return the sizes of a torch tensor without calling a subclass; None if it has none."""
    with torch._C.DisableTorchFunctionSubclass():
        try:
            return tuple(tensor.shape)
        except (RuntimeError, ValueError):
            return None


def _place(memory: TensorMemory, tensor: Any) -> None:
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
            # without the Python object `storage`
            "use_count": torch._C._storage_Use_Count(storage._cdata) - 1
            if hasattr(torch._C, "_storage_Use_Count")
            else None,
        }
    )
    memory.owner = "torch storage"
    assert memory.sizes is not None
    space = address_space(str(memory.device))
    block = Block(space, tensor.data_ptr(), memory.sizes, memory.strides, memory.itemsize)
    low, high = byte_range(block)
    if low < high and not begin <= low <= high <= begin + nbytes:
        memory.note = (
            f"The tensor reaches to byte {high - begin} of a storage of {nbytes}: the storage was "
            "resized under it."
        )
        return
    memory.buffer = (space, begin, begin + nbytes)
    memory.set_address(tensor.data_ptr())


def _description(tensor: Any) -> str:
    if tensor.layout in _PARTS:
        return f"tensor of layout {tensor.layout}"
    return "nested tensor" if tensor.is_nested else type(tensor).__name__


def _of_parts(memory: TensorMemory, parts: list[Any], what: str) -> TensorMemory:
    """Return `memory` with the blocks of all `parts`."""
    memory.note = f"A {what} is not one block of memory: it consists of {len(parts)} tensors."
    for part in parts:
        found = torch_memory(part)
        memory.blocks += found.blocks
        memory.unknown = memory.unknown or found.unknown
        memory.chain += found.chain
    memory.readonly = False
    return memory


def _parts_of(tensor: Any) -> list[Any] | None:
    """Return the tensors that `tensor` consists of; None for a plain tensor."""
    if tensor.layout in _PARTS:
        return [getattr(tensor, name)() for name in _PARTS[tensor.layout]]
    if torch.utils._python_dispatch.is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        inner = [getattr(tensor, name) for name in names]
        return [part for part in inner if isinstance(part, torch.Tensor)]
    if tensor.is_nested:
        return list(tensor.unbind())
    return None


def _why_no_memory(tensor: Any) -> str | None:
    """Return why a tensor has no memory of its own; None if it has."""
    if is_placeholder(tensor):
        return "Inside torch.func transforms and tracing a tensor is a placeholder for others."
    if any(cls.__name__ == "FakeTensor" for cls in type(tensor).__mro__):
        return "A fake tensor has sizes and no data."
    if tensor.device.type == "meta":
        return "A meta tensor has sizes and no data."
    return None


def _why_unknown(tensor: Any) -> tuple[str | None, bool]:
    """Return (why the place of a tensor's memory is not known, or None; whether it has memory)."""
    if tensor.layout != torch.strided:
        return f"The memory of a tensor of layout {tensor.layout} is not accessible.", True
    try:
        address = tensor.data_ptr()
        tensor.untyped_storage()
    except (RuntimeError, ValueError) as error:
        return f"torch does not reveal where the memory is: {error}", True
    if address == 0 and tensor.numel():
        lost = "The tensor has no memory: its storage was freed or resized."
        return why_not_subclass(tensor) or lost, False
    return None, False


def _device_name(device: Any) -> str:
    """Return the bridge's name of a torch device."""
    return str(device.type if device.index is None or device.type == "cpu" else device)


def torch_byte_range(tensor: Any) -> tuple[str, int, int] | None:
    """Return the (address space, first byte, byte after the last) of a plain tensor's elements.

    None for other tensors. Fast enough to be called on every tensor of a process.
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
        space = address_space(_device_name(tensor.device))
        low, high = byte_range(Block(space, address, tensor.shape, steps, itemsize))
    return (space, low, high) if address and low < high else None
