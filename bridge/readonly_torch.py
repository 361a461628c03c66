# SPDX-License-Identifier: Apache-2.0
"""torch tensors on read-only memory that refuse to be written: ``to_torch(x, readonly=True)``.

torch has no such tensors. `ReadOnlyTensor` is one for torch's functions, with two layers:

- Every operation of torch reaches ``__torch_dispatch__``, with the class as one that wraps a plain
  tensor of the memory. An operation whose schema says that it writes the tensor is refused before
  it runs; all others compute with the plain tensor. A result that has its memory is again a
  ReadOnlyTensor, every other result is plain.
- The storage that torch's C++ code reads from the object is a second one of the same memory, which
  torch has been told not to give out for writing. So ``y.data = x`` and ``y.set_(storage)`` make
  no tensor that can be written, and code that only has the object cannot take its address.

Methods that have no operation behind them (``numpy``, ``tolist``, ``data_ptr``, …) are here.
"""

from __future__ import annotations

from typing import Any, NoReturn

import torch

from bridge.at.readonly_guard import computed, read_only, written
from bridge.at.tensor import Tensor as AtTensor
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.exchange.import_tensor import import_tensor

# (parts of torch that its types do not describe)
_torch: Any = torch
# An integer of each size, for types that torch's DLPack lacks.
_BITS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64, 16: torch.complex128}
# Operations that give their first argument the memory of another.
_TAKING_MEMORY = ("aten::set_", "aten::set", "aten::set_data")
_protect = getattr(torch._C, "_set_throw_on_mutable_data_ptr", None)


def guarded(tensor: torch.Tensor) -> ReadOnlyTensor:
    """Return a ReadOnlyTensor of the memory of a plain tensor, which no other code may write by."""
    return tensor if isinstance(tensor, ReadOnlyTensor) else ReadOnlyTensor(tensor)


def _refuse(self: Any, *args: Any, **kwargs: Any) -> NoReturn:
    raise _error(self)


def _error(given: Any) -> EnforceNotMet:
    """Return the error of an operation that would write a ReadOnlyTensor or its storage.

    torch.compile runs a call that raises a TypeError about an argument outside of the graph.
    """
    if isinstance(given, ReadOnlyTensor) and type(given._plain) is not torch.Tensor:
        return EnforceTypeError("The memory of this argument is read-only.", "Tensor")
    return read_only()


class ReadOnlyTensor(torch.Tensor):
    """A torch tensor on memory that is read-only: calls that would write it raise EnforceNotMet.

    Views are read-only too, results are plain tensors, and so are copies by ``copy.deepcopy`` and
    pickle. ``numpy()`` is a read-only array.
    """

    _plain: Any  # the torch.Tensor to compute with
    _is_read_only = True  # for bridge.exchange.import_tensor

    @staticmethod
    def __new__(cls, plain: torch.Tensor) -> ReadOnlyTensor:
        """Return a tensor of the memory of `plain`, a plain tensor."""
        if type(plain) is not torch.Tensor:  # torch.compile's, without memory
            return torch.Tensor._make_wrapper_subclass(
                cls,
                plain.size(),
                strides=plain.stride(),
                storage_offset=plain.storage_offset(),
                dtype=plain.dtype,
                layout=plain.layout,
                device=plain.device,
            )
        made: ReadOnlyTensor = torch.Tensor._make_subclass(cls, _of_protected_storage(plain))
        return made

    def __init__(self, plain: torch.Tensor) -> None:
        super().__init__()
        self._plain = plain

    __torch_function__: Any = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        for given in written(func, args, kwargs):
            if isinstance(given, cls):
                raise _error(given)
        sources: list[ReadOnlyTensor] = []
        plain_args = _replaced(args, _collector(sources))
        plain_kwargs = {name: _replaced(x, _collector(sources)) for name, x in kwargs.items()}
        schema = getattr(func, "_schema", None)
        if schema is not None and schema.name in _TAKING_MEMORY:
            raise read_only()
        out = computed(func, plain_args, plain_kwargs)
        if isinstance(out, torch.Tensor) and out.layout is not torch.strided:
            # which may have the memory as its values
            plain_args = _replaced(plain_args, torch.clone)
            out = computed(func, plain_args, _replaced(plain_kwargs, torch.clone))
        return _replaced(out, lambda result: _as_view(result, sources))

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        return ["_plain"], None

    @staticmethod
    def __tensor_unflatten__(
        inner: dict[str, Any], context: None, outer_size: Any, outer_stride: Any
    ) -> ReadOnlyTensor:
        return ReadOnlyTensor(inner["_plain"])

    # Calls that read the memory without an operation.

    @property
    def data(self) -> torch.Tensor:
        """The same memory, detached. Setting it makes this a plain tensor of other memory."""
        return self.detach()

    @data.setter
    def data(self, value: torch.Tensor) -> None:
        # (as Module.to does; nothing is written)
        made = value.detach()
        made = (
            torch.nn.Parameter(made, requires_grad=self.requires_grad)
            if getattr(self, "_is_param", False)
            else made.requires_grad_(self.requires_grad)
        )
        if self.grad is not None and made.requires_grad:
            made.grad = self.grad.to(made)
        try:
            _torch.utils.swap_tensors(self, made)
        except RuntimeError as error:
            raise read_only() from error

    def data_ptr(self) -> int:
        """Return the address of the first element; nothing may be written there."""
        return int(self._plain.data_ptr())

    def numpy(self, *, force: bool = False) -> Any:
        """Return a read-only NumPy array of the memory. `force`: as in torch."""
        if self.requires_grad and not force:
            raise RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() "
                "instead."
            )
        if self.device.type != "cpu":
            return self._plain.numpy(force=force)  # a copy, or torch's error
        return AtTensor._wrap(import_tensor(self.detach())).numpy()

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        """Return a NumPy array; read-only unless it is a copy."""
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError("Another dtype needs a copy. Allow it with copy=None.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def tolist(self) -> Any:
        """Return the elements as nested lists."""
        return self._plain.tolist()

    def __dlpack__(self, **kwargs: Any) -> Any:
        """Return a DLPack capsule that says read-only; raise BufferError where it could not."""
        return AtTensor._wrap(import_tensor(self)).__dlpack__(**kwargs)

    @property
    def __cuda_array_interface__(self) -> Any:
        """The interface of CUDA arrays, read-only."""
        return AtTensor._wrap(import_tensor(self)).__cuda_array_interface__

    def untyped_storage(self) -> torch.UntypedStorage:
        """Return the storage, for reading."""
        storage = torch._C.TensorBase.untyped_storage(self)
        if type(storage) is torch.UntypedStorage and type(self._plain) is torch.Tensor:
            storage._plain = self._plain.untyped_storage()  # type: ignore[attr-defined]
            storage.__class__ = ReadOnlyStorage
        return storage

    def _typed_storage(self) -> Any:
        storage = _torch.storage.TypedStorage(
            wrap_storage=self.untyped_storage(), dtype=self.dtype, _internal=True
        )
        storage.__class__ = ReadOnlyTypedStorage
        return storage

    def storage(self) -> Any:
        """Return the storage with elements of the tensor's type, for reading."""
        return self._typed_storage()

    def is_shared(self) -> bool:
        """Return whether the memory is shared with other processes."""
        return bool(self._plain.is_shared())

    def __repr__(self) -> str:  # type: ignore[override]
        if type(self._plain) is not torch.Tensor:  # torch.compile's, which has no values
            return f"ReadOnlyTensor({self._plain!r})"
        return str(_torch.Tensor.__repr__(self))

    def __format__(self, spec: str) -> str:
        return str(self._plain.__format__(spec))

    # Copies, which may be written.

    def _copied(self) -> torch.Tensor:
        copied: torch.Tensor = self._plain.clone()
        if getattr(self, "_is_param", False):
            return torch.nn.Parameter(copied, requires_grad=self.requires_grad)
        copied.requires_grad_(self.requires_grad)
        return copied

    def __reduce_ex__(self, protocol: Any) -> Any:
        copied: Any = self._copied()
        return copied.__reduce_ex__(protocol)

    def __deepcopy__(self, memo: Any) -> torch.Tensor:
        copied = memo[id(self)] = self._copied()
        return copied

    def __copy__(self) -> ReadOnlyTensor:
        made = ReadOnlyTensor(self._plain)
        made.requires_grad_(self.requires_grad)
        return made


class ReadOnlyStorage(torch.UntypedStorage):
    """The storage of a ReadOnlyTensor, for reading; writes raise EnforceNotMet."""

    _plain: torch.UntypedStorage

    def untyped(self) -> ReadOnlyStorage:
        """Return the same object."""
        return self


class ReadOnlyTypedStorage(torch.storage.TypedStorage):
    """The same with elements of a type."""


def _delegate(name: str) -> Any:
    inherited = getattr(torch.UntypedStorage, name)
    if not callable(inherited):
        return property(lambda self: getattr(self._plain, name))

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        return getattr(self._plain, name)(*args, **kwargs)

    method.__name__, method.__doc__ = name, inherited.__doc__
    return method


def _is_writing(name: str) -> bool:
    """Return whether a method of a tensor or storage works in place, by its name."""
    return (name.endswith("_") and not name.endswith("__")) or name in _WRITING


_WRITING = frozenset(
    {
        *("__iadd__", "__iand__", "__idiv__", "__ifloordiv__", "__ilshift__", "__imod__"),
        *("__imul__", "__ior__", "__ipow__", "__irshift__", "__isub__", "__itruediv__"),
        *("__ixor__", "__setitem__", "__setstate__", "__delitem__"),
        *("byteswap", "_byteswap", "_set_cdata", "_set_from_file", "_share_fd_cpu_"),
    }
)
_OF_THE_CLASS = ("untyped", "from_buffer", "from_file")

# (methods refuse calls that an operation would refuse as well: those without an operation, and
# arguments that do not fit)
for _name in dir(torch.Tensor):
    if _is_writing(_name) and _name != "requires_grad_":
        setattr(ReadOnlyTensor, _name, _refuse)
for _name in dir(torch.storage.TypedStorage):
    if _is_writing(_name):
        setattr(ReadOnlyTypedStorage, _name, _refuse)
for _name in dir(torch.UntypedStorage):
    if _is_writing(_name):
        setattr(ReadOnlyStorage, _name, _refuse)
    elif _name in ("__len__", "__getitem__", "__reduce__", "__deepcopy__", "__copy__") or (
        not _name.startswith("_") and _name not in _OF_THE_CLASS
    ):
        setattr(ReadOnlyStorage, _name, _delegate(_name))


def _of_protected_storage(plain: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same memory in a storage that torch does not give out for writing."""
    bits = plain
    with torch.inference_mode(False):
        try:
            capsule = _torch.utils.dlpack.to_dlpack(bits)
        except (BufferError, RuntimeError):
            bits = plain.view(_BITS[plain.itemsize])
            capsule = _torch.utils.dlpack.to_dlpack(bits)
        tensor: torch.Tensor = torch.utils.dlpack.from_dlpack(capsule)
        tensor = tensor if bits is plain else tensor.view(plain.dtype)
    if _protect is not None:
        _protect(tensor)
    return tensor


def _replaced(x: Any, function: Any) -> Any:
    """Return `x` with `function` applied to each tensor in it."""
    if isinstance(x, torch.Tensor):
        return function(x)
    if type(x) is list or type(x) is tuple:
        return type(x)(_replaced(item, function) for item in x)
    if isinstance(x, tuple) and hasattr(type(x), "n_fields"):  # one of torch.return_types
        return type(x)([_replaced(item, function) for item in x])
    return x


def _collector(sources: list[ReadOnlyTensor]) -> Any:
    """Return a function that returns the plain tensor of a ReadOnlyTensor, and lists that."""

    def plain(tensor: torch.Tensor) -> Any:
        if not isinstance(tensor, ReadOnlyTensor):
            return tensor
        sources.append(tensor)
        return tensor._plain

    return plain


def _has_memory_of(result: torch.Tensor, plain: torch.Tensor) -> bool:
    return result.layout is torch.strided and bool(_torch._C._is_alias_of(result, plain))


def _as_view(result: torch.Tensor, sources: list[ReadOnlyTensor]) -> torch.Tensor:
    """Return `result`, as a ReadOnlyTensor if it has the memory of one of `sources`."""
    for source in sources:
        if result is source._plain:
            return source
        if _has_memory_of(result, source._plain):
            if result.is_conj() or result.is_neg():
                return result.resolve_conj().resolve_neg()
            return ReadOnlyTensor(result)
    return result
