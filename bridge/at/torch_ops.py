# SPDX-License-Identifier: Apache-2.0
"""Every operation that at.Tensor has not of its own: torch's, on the same memory.

A tensor goes to torch, the operation runs, and what comes back goes to at.Tensor.
Two things torch cannot know are looked after here. Read-only memory is lent to
torch for operations that read it; those that write (by the convention that their
names end in an underscore, or by ``out=``) are refused, and what shares the
memory with a read-only argument is read-only, too. And memory with negative
strides, of which torch gets a copy, is written back after an operation in place.

A result stays a torch.Tensor where it is one that was given, as ``out=`` or to be written in
place, and where autograd records it (some argument requires grad), since at.Tensor has no
gradients to carry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bridge.at.torch_names import ATTRIBUTES, METHODS
from bridge.at.write_guard import guard, read_only
from bridge.c10.errors import EnforceTypeError
from bridge.c10.tensor_impl import TensorImpl
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.torch_api import is_torch_tensor
from bridge.exchange.torch_export import torch_operand
from bridge.wrapper import Wrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "attribute",
    "binary",
    "call_method",
    "function",
    "newer_names",
    "operation",
]

_wrap: Callable[[TensorImpl], Any]
_write_back: Callable[[TensorImpl, Any], None]
_mark_readonly: Callable[[TensorImpl], None]
_mark_owned: Callable[[TensorImpl], None]
_take_metadata: Callable[[TensorImpl, TensorImpl], None]


def set_hooks(
    wrap: Callable[[TensorImpl], Any],
    write_back: Callable[[TensorImpl, Any], None],
    mark_readonly: Callable[[TensorImpl], None],
    mark_owned: Callable[[TensorImpl], None],
    take_metadata: Callable[[TensorImpl, TensorImpl], None],
) -> None:
    """Hand over what this module must not import (`bridge.at` calls it)."""
    global _wrap, _write_back, _mark_readonly, _mark_owned, _take_metadata
    _wrap, _write_back, _mark_readonly = wrap, write_back, mark_readonly
    _mark_owned, _take_metadata = mark_owned, take_metadata


# Not operations: they are about autograd, which the bridge leaves to torch, or give
# away what is the bridge's.
_NOT_OPERATIONS = frozenset(
    {
        "backward", "detach_", "module_load", "new", "numpy", "register_hook", "requires_grad_",
        "register_post_accumulate_grad_hook", "retain_grad", "share_memory_", "storage",
        "storage_type", "typed_storage", "untyped_storage", "as_subclass", "cdata", "volatile",
    }
)  # fmt: skip

# In-place changes of metadata: the view that gives the new metadata.
_METADATA = {
    "as_strided_": "as_strided",
    "squeeze_": "squeeze",
    "swapaxes_": "transpose",
    "swapdims_": "transpose",
    "t_": "t",
    "transpose_": "transpose",
    "unsqueeze_": "unsqueeze",
}


def _torch() -> Any:
    import torch

    return torch


class _Call:
    """One operation: what its arguments became for torch, and what was read-only of them."""

    __slots__ = ("pairs", "readonly", "theirs", "written")

    def __init__(self) -> None:
        # every tensor of ours among the arguments, and what torch got for it
        self.pairs: list[tuple[Wrapper, Any]] = []
        # those that are torch's own: what an operation in place, or out=, gives back as it is
        self.theirs: list[Any] = []
        # those whose memory the operation may write, although torch may have got a copy
        self.written: list[tuple[Wrapper, Any]] = []
        # addresses of read-only memory that torch got
        self.readonly: list[tuple[int, int]] = []

    def argument(self, value: Any, written: bool = False) -> Any:
        """What torch gets for an argument; tuples, lists and dicts are looked into."""
        if isinstance(value, Wrapper):
            return self._tensor(value, written)
        if type(value) is tuple or type(value) is list:
            return type(value)([self.argument(one, written) for one in value])
        if type(value) is dict:
            return {name: self.argument(one, written) for name, one in value.items()}
        if is_torch_tensor(value):
            self.theirs.append(value)
            return value
        return _torch_spelling(value)

    def _tensor(self, wrapper: Wrapper, written: bool) -> Any:
        impl = wrapper.unsafeGetTensorImpl()
        storage = impl.get_storage()
        if storage.readonly:
            if written:
                raise read_only()
            first = storage.data_ptr()
            self.readonly.append((first, first + storage.nbytes()))
        tensor = torch_operand(impl)
        self.pairs.append((wrapper, tensor))
        if written:
            self.written.append((wrapper, tensor))
        return tensor

    def result(self, value: Any) -> Any:
        """What the caller gets for what torch gave."""
        if is_torch_tensor(value):
            for wrapper, tensor in self.pairs:
                if value is tensor:
                    if not wrapper.unsafeGetTensorImpl().get_storage().readonly:
                        # an operation in place, by its name or by a flag
                        _write_back(wrapper.unsafeGetTensorImpl(), tensor)
                    return wrapper
            if any(value is one for one in self.theirs):
                return value
            return self._new(value)
        if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple of torch's own
            return type(value)([self.result(one) for one in value])
        if type(value) is tuple or type(value) is list:
            return type(value)([self.result(one) for one in value])
        if isinstance(value, tuple) and type(value).__module__.startswith("torch"):
            if type(value).__name__ == "Size":
                return tuple(value)
            return type(value)([self.result(one) for one in value])
        return value

    def _new(self, value: Any) -> Any:
        if value.requires_grad:
            return value  # autograd goes on from here, and only torch's own tensor carries it
        fresh = not value._is_view()
        impl = import_tensor(value)
        if self.readonly and impl.numel():
            address = impl.get_storage().data_ptr()
            if any(first <= address < end for first, end in self.readonly):
                _mark_readonly(impl)
                fresh = False
        if fresh:
            _mark_owned(impl)
        return _wrap(impl)

    def finish(self) -> None:
        """Bring home what was written to copies."""
        for wrapper, tensor in self.written:
            _write_back(wrapper.unsafeGetTensorImpl(), tensor)


def _torch_spelling(value: Any) -> Any:
    """Types, devices and sizes of the bridge in torch's terms; everything else as it is."""
    from bridge.c10.array_ref import ArrayRef
    from bridge.c10.device import Device, DeviceType
    from bridge.c10.type_meta import TypeMeta

    if isinstance(value, TypeMeta):
        if value.torch is None:
            raise EnforceTypeError(f"torch has no element type {value}.", "Tensor")
        return value.torch
    if isinstance(value, (Device, DeviceType)):
        return str(Device(value))
    if isinstance(value, ArrayRef):
        return tuple(value)
    return value


def _writes(name: str) -> bool:
    return name.endswith("_") and not name.endswith("__")


def _run(name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    call = _Call()
    writes = _writes(name)
    given = [call.argument(one, written=writes and i == 0) for i, one in enumerate(args)]
    named = {key: call.argument(one, written=key == "out") for key, one in kwargs.items()}
    if call.readonly:
        with guard(call.readonly):
            result = func(*given, **named)
    else:
        result = func(*given, **named)
    if call.written:
        call.finish()
    return call.result(result)


def call_method(name: str, *args: Any, **kwargs: Any) -> Any:
    """Run the method `name` of torch.Tensor on the first argument."""
    return _run(name, getattr(_torch().Tensor, name), args, kwargs)


def binary(name: str, a: Any, b: Any) -> Any:
    """An operator: NotImplemented where an operand is nothing that torch takes."""
    torch = _torch()
    if not (_takes_part(a) and _takes_part(b)):
        return NotImplemented
    a, b = _operand(a), _operand(b)
    func = torch.true_divide if name == "div" else getattr(torch, name)
    if isinstance(a, (int, float, complex)) and (
        name in ("floor_divide", "matmul") or name.startswith("bit")
    ):
        a = torch.tensor(a)  # on the left these take a tensor only
    return _run(name, func, (a, b), {})


def _takes_part(x: Any) -> bool:
    return (
        isinstance(x, (Wrapper, int, float, complex))
        or hasattr(type(x), "__torch_function__")
        or hasattr(x, "__dlpack__")
        or hasattr(x, "__array_interface__")
    )


def _operand(x: Any) -> Any:
    """NumPy arrays and other producers as tensors, sharing their memory."""
    if isinstance(x, (Wrapper, int, float, complex)) or hasattr(type(x), "__torch_function__"):
        return x  # (what torch's own functions let answer for itself they do here)
    return _wrap(import_tensor(x))


def torch_function(func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """What ``torch.<function>`` of our tensors does (the protocol `__torch_function__`)."""
    return _run(getattr(func, "__name__", ""), func, args, kwargs or {})


def operation(name: str) -> Any:
    """What at.Tensor has under the name of a method of torch.Tensor: the method, run by torch."""
    if name in _METADATA:
        return _in_place_view(name, _METADATA[name])
    if name == "resize_as_":

        def resize_as_(self: Any, other: Any) -> Any:
            """`resize_` to the sizes of `other`; gives this tensor."""
            return self.resize_(other.size())

        return resize_as_

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        found = getattr(_torch().Tensor, name, None)
        if found is None:
            raise AttributeError(f"This torch has no tensor method {name!r}.")
        return _run(name, found, (self, *args), kwargs)

    run.__name__ = name
    run.__qualname__ = f"Tensor.{name}"
    run.__doc__ = f"``torch.Tensor.{name}`` on the same memory."
    return run


def attribute(name: str) -> Any:
    """What at.Tensor has under the name of an attribute of torch.Tensor: its value there."""

    def read(self: Any) -> Any:
        return _run(name, lambda tensor: getattr(tensor, name), (self,), {})

    return property(read, doc=f"``torch.Tensor.{name}`` of the same memory.")


def newer_names() -> tuple[list[str], list[str]]:
    """Methods and attributes of the torch that is here, beside the listed ones."""
    listed = {*METHODS, *ATTRIBUTES}
    methods: list[str] = []
    attributes: list[str] = []
    cls = _torch().Tensor
    for name in dir(cls):
        if not name.startswith("_") and name not in _NOT_OPERATIONS and name not in listed:
            (methods if callable(getattr(cls, name)) else attributes).append(name)
    return methods, attributes


def _in_place_view(name: str, view: str) -> Any:
    def change(self: Any, *args: Any, **kwargs: Any) -> Any:
        seen = getattr(self, view)(*args, **kwargs)
        _take_metadata(self.unsafeGetTensorImpl(), seen.unsafeGetTensorImpl())
        return self

    change.__name__ = name
    change.__qualname__ = f"Tensor.{name}"
    change.__doc__ = f"`{view}` in place: other sizes and strides, the same memory."
    return change


def function(name: str) -> Callable[..., Any]:
    """``torch.<name>`` for at.Tensors; AttributeError where torch has no such function."""
    found = _function(name)
    if found is None:
        raise AttributeError(f"bridge.at has no function {name!r}, nor has torch.")
    return _for_tensors(name, found)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every function of torch and of torch.nn.functional, for at.Tensors."""
    torch = _torch()
    for name in {*dir(torch), *dir(torch.nn.functional)}:
        found = _function(name)
        if found is not None:
            yield name, _for_tensors(name, found)


def _function(name: str) -> Callable[..., Any] | None:
    if name.startswith("_"):
        return None
    torch = _torch()
    for module in (torch, torch.nn.functional):
        found = vars(module).get(name)
        if callable(found) and not isinstance(found, type):
            return found  # type: ignore[no-any-return]
    return None


def _for_tensors(name: str, found: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        return _run(name, found, args, kwargs)

    run.__name__ = name
    run.__doc__ = f"``{found.__module__ or 'torch'}.{name}`` on the memory of at.Tensors."
    return run
