# SPDX-License-Identifier: Apache-2.0
"""Run a function of torch on the memory of at.Tensors and caffe2.Tensors.

Arguments are exported to torch, the function runs, and new tensors in the result become at.Tensors.
torch does not know that memory may be read-only, so it is handled here: functions that only read
such memory get it, those that would write it are refused (names that end in an underscore, ``out=``
and everything that `readonly_guard` detects), and results that share it are read-only. Memory with
negative strides is exported as a copy and written back after a function that writes.

A tensor in the result stays a torch.Tensor if the caller passed it (as ``out=`` or to be written in
place), if it requires grad, since an at.Tensor does not record gradients, or if it is one of a
transform, such as torch.vmap, which has no memory. So what requires grad, or has a tangent, is not
written into one (BufferError, outside of torch.no_grad).
"""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.at.element_writes import write_back
from bridge.at.storage_ops import has_memory_of, import_result, mark_owned, mark_readonly
from bridge.at.torch_defaults import default_type
from bridge.c10.array_ref import ArrayRef
from bridge.c10.device import Device, DeviceType
from bridge.c10.errors import EnforceNotMet, EnforceTypeError
from bridge.c10.tensor_impl import TensorImpl
from bridge.c10.type_meta import TypeMeta
from bridge.exchange.import_tensor import import_tensor
from bridge.exchange.torch_api import has_tangent, is_torch_tensor
from bridge.exchange.torch_export import resized_operand, torch_operand
from bridge.exchange.torch_import import refuse_gradient
from bridge.wrapper import Wrapper


class _Call:
    """The arguments of one call as torch receives them, and the conversion of its result."""

    __slots__ = ("joined", "pairs", "readonly", "theirs", "wrap", "written")

    def __init__(
        self, wrap: Callable[[TensorImpl], Any], joined: dict[int, Any] | None = None
    ) -> None:
        self.wrap = wrap
        # id of an argument -> the torch tensor that it is passed as; see `joint_memory`.
        self.joined = joined or {}
        # Each wrapper among the arguments, with the torch tensor exported for it.
        self.pairs: list[tuple[Wrapper, Any]] = []
        # Arguments that are torch tensors; functions may return them.
        self.theirs: list[Any] = []
        # The pairs that the function may write; the torch tensor may be a copy.
        self.written: list[tuple[Wrapper, Any]] = []
        # Address ranges of exported read-only memory.
        self.readonly: list[tuple[int, int]] = []

    def argument(self, value: Any, written: bool = False, resizes: bool = False) -> Any:
        """Return an argument as torch takes it; tuples, lists and dicts are converted inside.

        `written`: torch writes it; `resizes`: and gives it other sizes where they do not fit.
        """
        if isinstance(value, Wrapper):
            return self._tensor(value, written, resizes)
        if type(value) is tuple or type(value) is list:
            return type(value)([self.argument(one, written, resizes) for one in value])
        if type(value) is dict:
            return {name: self.argument(one, written, resizes) for name, one in value.items()}
        if is_torch_tensor(value):
            self.theirs.append(value)
            return self.joined.get(id(value), value)
        return _torch_value(value)

    def _tensor(self, wrapper: Wrapper, written: bool, resizes: bool) -> Any:
        impl = wrapper.unsafeGetTensorImpl()
        storage = impl.get_storage()
        if storage.readonly:
            if written:
                from bridge.at.readonly_guard import read_only

                raise read_only()
            first = storage.data_ptr()
            self.readonly.append((first, first + storage.nbytes()))
        tensor = self.joined.get(id(wrapper))
        if tensor is None:
            tensor = resized_operand(impl) if resizes else torch_operand(impl)
        self.pairs.append((wrapper, tensor))
        if written:
            self.written.append((wrapper, tensor))
        return tensor

    def result(self, value: Any) -> Any:
        """Return the result of torch as the caller gets it."""
        if is_torch_tensor(value):
            for wrapper, tensor in self.pairs:
                if value is tensor:
                    if not wrapper.unsafeGetTensorImpl().get_storage().readonly:
                        # A function in place, by its name or by a flag.
                        write_back(wrapper.unsafeGetTensorImpl(), tensor)
                    return wrapper
            for one in self.theirs:
                if value is one or value is self.joined.get(id(one)):
                    return one
            return self._new(value)
        if isinstance(value, tuple) and hasattr(value, "_make"):  # a named tuple of Python
            return type(value)._make(self.result(one) for one in value)
        if type(value) is tuple or type(value) is list:
            return type(value)([self.result(one) for one in value])
        if isinstance(value, tuple) and type(value).__module__.startswith("torch"):
            if type(value).__name__ == "Size":
                return tuple(value)
            return type(value)([self.result(one) for one in value])
        return value

    def join(self) -> dict[int, Any]:
        """Return what `joined` must be for torch to see which arguments overlap."""
        arguments: list[Any] = [wrapper for wrapper, _ in self.pairs]
        impls = [wrapper.unsafeGetTensorImpl() for wrapper in arguments]
        for one in self.theirs:
            try:
                impls.append(import_tensor(one))
            except BufferError:
                continue  # it records gradients, or has no memory
            arguments.append(one)
        from bridge.at.joint_memory import joined

        tensors = joined(impls) if len(impls) > 1 else None
        if tensors is None:
            return self._sharing_outputs()
        return {
            id(one): tensor
            for one, tensor in zip(arguments, tensors, strict=True)
            if tensor is not None
        }

    def _sharing_outputs(self) -> dict[int, Any]:
        """Return plain operands for outputs on a device that share the storage of an input.

        What `resized_operand` returns for them is another storage to torch.
        """
        found: dict[int, Any] = {}
        for wrapper, tensor in self.written:
            impl = wrapper.unsafeGetTensorImpl()
            operand = None if tensor.device.type == "cpu" else torch_operand(impl)
            if operand is not None and any(
                other is not wrapper
                and other.unsafeGetTensorImpl().get_storage() is impl.get_storage()
                for other, _ in self.pairs
            ):
                found[id(wrapper)] = operand
        return found

    def _new(self, value: Any) -> Any:
        """Return the at.Tensor of a new result; torch's own where it is not one block of memory.

        So what is sparse, nested or quantized stays torch's, and what records gradients.
        """
        if value.requires_grad or has_tangent(value):
            return value
        try:
            impl = import_result(value)
        except BufferError:
            import torch

            from bridge.exchange.torch_state import is_placeholder

            if is_placeholder(value):
                return value
            if value.layout != torch.strided or value.is_nested or value.is_quantized:
                return value.clone() if self.readonly else value
            raise
        if self.readonly and impl.numel():
            address = impl.get_storage().data_ptr()
            if any(first <= address < end for first, end in self.readonly):
                mark_readonly(impl)
        if not value._is_view() and not has_memory_of(
            impl, [wrapper.unsafeGetTensorImpl() for wrapper, _ in self.pairs]
        ):
            mark_owned(impl)
        return self.wrap(impl)

    def finish(self) -> None:
        """Copy what torch wrote to copies back into the wrappers, and set the sizes it gave."""
        for wrapper, tensor in self.written:
            _conjugate_now(tensor)
            impl = wrapper.unsafeGetTensorImpl()
            if tuple(tensor.shape) == tuple(impl.sizes()):
                write_back(impl, tensor)
            else:
                self._resize(impl, tensor)

    def _resize(self, impl: TensorImpl, tensor: Any) -> None:
        """Set `impl` to `tensor`, its own as torch resized it, perhaps into other memory."""
        x = self.wrap(impl)
        try:
            stayed = tensor.numel() != 0 and tensor.data_ptr() == x.data_ptr()
        except BufferError:  # its storage has other memory now
            stayed = False
        if stayed:
            x.set_(x.storage(), x.storage_offset(), tuple(tensor.shape), tensor.stride())
        else:
            x.set_(self.wrap(import_result(tensor)))


class TorchRunner:
    """Runs functions of torch; `wrap` constructs the at.Tensors of the results."""

    __slots__ = ("_wrap",)

    def __init__(self, wrap: Callable[[TensorImpl], Any]) -> None:
        self._wrap = wrap

    def run(self, name: str, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Call `func`, which `name` names; a name that ends in ``_`` writes its first argument."""
        writes = name.endswith("_") and not name.endswith("__")
        resizes = name.startswith("resize")

        def converted(call: _Call) -> tuple[list[Any], dict[str, Any]]:
            return [
                call.argument(one, writes and i == 0, resizes and i == 0)
                for i, one in enumerate(args)
            ], {key: call.argument(one, key == "out", key == "out") for key, one in kwargs.items()}

        call = _Call(self._wrap)
        given, named = converted(call)
        if writes and call.written and not resizes and _has_gradients(call.written[0][1]):
            for one in call.theirs:
                refuse_gradient(one)
        if (writes or "out" in named or named.get("inplace")) and (
            len(call.pairs) + len(call.theirs) > 1
        ):
            joint = call.join()
            if joint:
                call = _Call(self._wrap, joint)
                given, named = converted(call)
        try:
            if call.readonly:
                from bridge.at.readonly_guard import guard

                with guard(call.readonly):
                    result = func(*given, **named)
            else:
                result = func(*given, **named)
        except RuntimeError as error:
            if call.written and "storage that is not resizable" in str(error):
                raise RuntimeError(_too_small(name, call.written)) from error
            if "single memory location" in str(error):
                raise EnforceNotMet(str(error).partition("\n")[0], f"Tensor.{name}") from error
            raise
        if call.written:
            call.finish()
        return call.result(result)

    def method(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Run the method `name` of torch.Tensor on the first argument."""
        import torch

        return self.run(name, getattr(torch.Tensor, name), args, kwargs)

    def binary(self, name: str, a: Any, b: Any) -> Any:
        """Run a binary operator; NotImplemented if torch does not support an operand."""
        import torch

        if not (_is_operand(a) and _is_operand(b)):
            return NotImplemented
        a, b = self._operand(a), self._operand(b)
        func = torch.true_divide if name == "div" else getattr(torch, name)
        if isinstance(a, (int, float, complex)) and (
            name in ("floor_divide", "matmul") or name.startswith("bit")
        ):
            # these take a tensor only as their left operand
            a = torch.tensor(a, dtype=default_type(a), device="cpu")
        return self.run(name, func, (a, b), {})

    def function(self, func: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Run a function of torch that was called with wrappers (see `__torch_function__`)."""
        return self.run(getattr(func, "__name__", ""), func, args, kwargs or {})

    def _operand(self, x: Any) -> Any:
        """Return an operand; arrays of NumPy and other producers become tensors, shared."""
        if isinstance(x, (Wrapper, int, float, complex)) or hasattr(type(x), "__torch_function__"):
            return x  # Classes with the protocol are dispatched by torch's own functions.
        return self._wrap(import_tensor(x))


def _has_gradients(tensor: Any) -> bool:
    """Return whether torch differentiates by tensors of this type."""
    return bool(tensor.is_floating_point() or tensor.is_complex())


def _conjugate_now(tensor: Any) -> None:
    """Conjugate the memory of a tensor that torch has written and marked as to be conjugated.

    ``torch.linalg.lu_solve(…, left=False, out=tensor)`` does (torch 2.13); the bridge's other
    tensors of the memory do not know of the mark.
    """
    if tensor.is_complex() and tensor.is_conj():
        plain = tensor.conj()  # a view of the memory as it is
        plain.conj_physical_()
        tensor.data = plain


def _too_small(name: str, written: list[tuple[Wrapper, Any]]) -> str:
    """Return what is wrong with tensors that torch would have to give other memory."""
    sizes = ", ".join(str(tuple(wrapper.sizes())) for wrapper, _ in written)
    return (
        f"{name} has more elements than what it writes has memory for: the sizes are {sizes}. The "
        "storage is not resizable by torch, as it is not torch's. Pass a tensor of the result's "
        "sizes, or leave out= away."
    )


def _torch_value(value: Any) -> Any:
    """Return a type, device or sizes of the bridge as those of torch, other values unchanged."""
    if isinstance(value, TypeMeta):
        if value.torch is None:
            raise EnforceTypeError(f"torch has no element type {value}.", "Tensor")
        return value.torch
    if isinstance(value, (Device, DeviceType)):
        return str(Device(value))
    if isinstance(value, ArrayRef):
        return tuple(value)
    return value


def _is_operand(x: Any) -> bool:
    return (
        isinstance(x, (Wrapper, int, float, complex))
        or hasattr(type(x), "__torch_function__")
        or hasattr(x, "__dlpack__")
        or hasattr(x, "__array_interface__")
    )
