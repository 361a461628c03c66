# SPDX-License-Identifier: Apache-2.0
"""The functions of `bridge` inside ``torch.compile``.

Compiled functions cannot be traced; torch.compile takes these, which do the same with torch's
tensors, in their place. In a graph, `from_dlpack(t)` is a torch.Tensor over the memory of `t`, of
a class with the methods of at.Tensor. A method that cannot be traced breaks the graph, where that
is allowed: the tensor leaves the graph as an at.Tensor, on which the call is made. With
``fullgraph=True`` it is an error, and results are of the class `TracedTensor`.

In ``audit()`` and ``no_copy()`` nothing is replaced. Before torch 2.9 each function breaks the
graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy
import torch

from bridge import front
from bridge.at.tensor import Tensor
from bridge.c10.type_meta import TypeMeta
from bridge.front import asarray, convert, from_dlpack, shares_memory, to_numpy, to_torch
from bridge.see import contexts


class TracedTensor(torch.Tensor):
    """The result of `from_dlpack` of a torch tensor in one graph: it, with at.Tensor's methods.

    `dtype` and `device` are torch's here, which torch's functions in the graph ask for.
    """

    def to_torch(self, *, copy: bool | None = None, writable: bool = False) -> torch.Tensor:
        """Return a plain torch.Tensor of the same memory; a copy under ``copy=True``."""
        return _plain(self, copy)

    def sizes(self) -> tuple[int, ...]:
        """Return the sizes."""
        return tuple(self.shape)

    def strides(self) -> tuple[int, ...]:
        """Return the strides, in elements."""
        return self.stride()

    def defined(self) -> bool:
        """Return True."""
        return True

    def slice(
        self, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
    ) -> torch.Tensor:
        """Return the view of positions `start` to `end` of `dim`, every `step`-th."""
        return self[(slice(None),) * (dim % self.dim()) + (slice(start, end, step),)]

    @property
    def readonly(self) -> bool:
        """False: torch's memory is writable."""
        return False


class _LeavingTensor(TracedTensor):
    """The result of `from_dlpack` of a torch tensor in a graph that may be broken.

    Whatever at.Tensor has and torch.Tensor has not, or otherwise, breaks the graph.
    """


def _at_tensor(x: torch.Tensor) -> Tensor:
    """Return an at.Tensor of the memory of a traced tensor that has left its graph."""
    with torch._C.DisableTorchFunctionSubclass():
        return from_dlpack(x.as_subclass(torch.Tensor))


def _method(name: str) -> Callable[..., Any]:
    """Return at.Tensor's method, which breaks the graph."""

    def method(self: torch.Tensor, *args: Any, **keywords: Any) -> Any:
        torch._dynamo.graph_break()
        return getattr(_at_tensor(self), name)(*args, **keywords)

    return method


def _property(name: str) -> property:
    """Return at.Tensor's property, which breaks the graph."""

    def attribute(self: torch.Tensor) -> Any:
        torch._dynamo.graph_break()
        return getattr(_at_tensor(self), name)

    return property(attribute)


# Names that both classes have and that mean something else in at.Tensor.
_OTHERWISE = ("device", "dtype", "itemsize", "nbytes", "size", "storage", "to")


def _add_methods() -> None:
    for name in dir(Tensor):
        if name.startswith("__"):
            continue
        cls = _LeavingTensor if name in _OTHERWISE else TracedTensor
        if cls is _LeavingTensor or name == "requires_grad_" or not hasattr(cls, name):
            is_call = callable(getattr(Tensor, name)) and name not in ("device", "dtype")
            setattr(cls, name, _method(name) if is_call else _property(name))


_add_methods()


# The folders whose functions see the torch.Tensor that a TracedTensor is in the graph.
_OWN = (os.path.dirname(torch.__file__), os.path.dirname(os.path.dirname(__file__)))


def _plain(x: torch.Tensor, copy: bool | None) -> torch.Tensor:
    if isinstance(x, TracedTensor):
        with torch._C.DisableTorchFunctionSubclass():
            return x.clone() if copy is True else x.view_as(x)
    return x.clone() if copy is True else x


def _call(function: Callable[..., Any], *arguments: Any, **keywords: Any) -> Any:
    return function(*arguments, **keywords)


# `_call` outside of the graph; `register` sets it, since that imports torch._dynamo.
_outside: Callable[..., Any] = _call
# Whether one graph is asked for; set as `_outside`.
_one_graph: Callable[[], bool] = bool


def _is_one_graph() -> bool:
    """Return whether the function that is traced now becomes one graph, or fails."""
    from torch._dynamo.symbolic_convert import InstructionTranslator

    tracing: Any = InstructionTranslator.current_tx()
    return bool(
        getattr(tracing, "one_graph", True) or getattr(tracing, "error_on_graph_break", False)
    )


def _to_torch(
    x: Any, *, copy: bool | None = None, writable: bool = False, readonly: bool = False
) -> Any:
    if isinstance(x, torch.Tensor) and not contexts.n_open:
        return _plain(x, copy)
    if isinstance(x, numpy.ndarray) and not contexts.n_open:
        return torch.from_numpy(x).clone() if copy is True else torch.from_numpy(x)
    return _outside(to_torch, x, copy=copy, writable=writable, readonly=readonly)


# Types that NumPy has, and whose torch tensors have no lazy bits.
_PLAIN = (
    *(torch.float32, torch.float64, torch.float16, torch.bool, torch.uint8),
    *(torch.int8, torch.int16, torch.int32, torch.int64),
)
_REQUIRES_GRAD = (
    "The tensor requires grad, and autograd would not see what the bridge does to it. "
    "Use tensor.detach()."
)


def _to_numpy(x: Any, *, copy: bool | None = None) -> Any:
    if not isinstance(x, torch.Tensor) or contexts.n_open:
        return _outside(to_numpy, x, copy=copy)
    if x.requires_grad:
        raise BufferError(_REQUIRES_GRAD)
    plain = _plain(x, copy)
    if plain.device.type != "cpu" or plain.dtype not in _PLAIN:
        return _outside(to_numpy, x, copy=copy)
    return plain.numpy()


def _convert(x: Any, to: Any = None, *, copy: bool | None = None, **options: Any) -> Any:
    if options:
        return _outside(convert, x, to, copy=copy, **options)
    if to == "torch":
        return _to_torch(x, copy=copy)
    if to == "numpy":
        return _to_numpy(x, copy=copy)
    if to == "at":
        return _from_dlpack(x, copy=copy)
    return _outside(convert, x, to, copy=copy)


def _from_dlpack(x: Any, *, device: Any = None, copy: bool | None = None) -> Any:
    if not isinstance(x, torch.Tensor) or contexts.n_open:
        return _outside(from_dlpack, x, device=device, copy=copy)
    if x.requires_grad:
        raise BufferError(_REQUIRES_GRAD)
    shared = x.clone() if copy is True else x.detach()
    if device is not None:
        shared = shared.to(str(device))
    return shared.as_subclass(TracedTensor if _one_graph() else _LeavingTensor)


def _asarray(x: Any, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Any:
    if (
        not isinstance(x, torch.Tensor)
        or contexts.n_open
        or (dtype is not None and not isinstance(dtype, torch.dtype))
    ):
        return _outside(asarray, x, dtype=dtype, device=device, copy=copy)
    shared = _from_dlpack(x, device=device, copy=copy)
    return shared if dtype is None else shared.to(dtype)


def _outside_of_graphs(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls another one outside of the graph."""

    def call(*arguments: Any, **keywords: Any) -> Any:
        return _outside(function, *arguments, **keywords)

    return call


# Before, traced code may not name classes, so all functions break the graph.
_IS_TRACED = tuple(int(number) for number in torch.__version__.split(".")[:2]) >= (2, 9)
# The parts of the functions of `bridge`.
_NOT_TRACED = (
    *("bridge.c10", "bridge.exchange", "bridge.functions", "bridge.libraries", "bridge.see"),
    # read-only tensors, which refuse to be written
    *("bridge.readonly_torch", "bridge.at.readonly_guard"),
)


def register() -> None:
    """Register the functions above with torch.compile, in place of the compiled ones."""
    global _outside, _one_graph
    from torch._dynamo import trace_rules

    why = "the bridge's functions are traced for torch's tensors only"
    told = {"reason": why} if _IS_TRACED else {}
    if not _IS_TRACED:  # for torch's error under fullgraph=True
        _call.__qualname__ = "bridge's functions are traced from torch 2.9 on"
    _outside = torch.compiler.disable(_call, **told)  # type: ignore[no-untyped-call]
    _one_graph = torch.compiler.assume_constant_result(_is_one_graph)  # type: ignore[no-untyped-call]
    pairs: list[tuple[Any, Any]] = [
        (to_torch, _to_torch),
        (to_numpy, _to_numpy),
        (convert, _convert),
        (from_dlpack, _from_dlpack),
        (asarray, _asarray),
    ]
    names = ("audit", "explain", "no_copy", "register", "shares_memory")
    for name in (*names, "to_cupy", "to_jax", "to_tensorflow"):
        function = getattr(front, name)
        pairs.append((function, _outside_of_graphs(function)))
    if not _IS_TRACED:
        pairs = [(function, _outside_of_graphs(function)) for function, _ in pairs]
    for compiled, traced in pairs:
        # compiled functions have no signature that could be compared
        torch.compiler.substitute_in_graph(compiled, skip_signature_check=True)(traced)
    for package in _NOT_TRACED:
        trace_rules.add(package)
    _refuse_strangers()
    if not _IS_TRACED:
        return
    # ``x.dtype`` of an argument, which guards compare
    torch.utils._pytree.register_constant(TypeMeta)
    _let_tensors_leave()
    _keep_the_class()
    _answer_for_the_class()
    _break_at_operators_in_place()


def _let_tensors_leave() -> None:
    """Patch torch so that a _LeavingTensor leaves its graph as an at.Tensor of the same memory."""
    from torch._dynamo import utils

    inner: Any = utils.to_subclass

    def to_subclass(t: Any, cls: type) -> Any:
        return _at_tensor(t) if cls is _LeavingTensor else inner(t, cls)

    # (else it would be compiled, too)
    utils.to_subclass = torch.compiler.disable(to_subclass)  # type: ignore[no-untyped-call]


def _keep_the_class() -> None:
    """Patch torch, where a TracedTensor becomes a torch.Tensor when it is written or iterated.

    2.9: by an item that is a tensor. 2.13: by an operation on several tensors; 2.14: by any. 2.15
    keeps the class.
    """
    from torch._dynamo.variables.torch_function import TensorWithTFOverrideVariable

    variable: Any = TensorWithTFOverrideVariable
    inner_set, inner_unpack = variable.__setattr__, variable.unpack_var_sequence

    def set_attribute(self: Any, name: str, value: Any) -> None:
        if name == "class_type" and issubclass(vars(self).get(name, object), TracedTensor):
            return
        inner_set(self, name, value)

    def unpack_var_sequence(self: Any, *arguments: Any, **named: Any) -> Any:
        found = inner_unpack(self, *arguments, **named)
        if issubclass(self.class_type, TracedTensor):
            for one in found:
                one.class_type = self.class_type
        return found

    variable.__setattr__, variable.unpack_var_sequence = set_attribute, unpack_var_sequence


def _answer_for_the_class() -> None:
    """Patch ``isinstance(x, …)`` and ``type(x)`` to take a TracedTensor for an at.Tensor.

    In torch's own functions it is the torch.Tensor that it is in the graph.
    """
    from torch._dynamo.variables.base import VariableTracker
    from torch._dynamo.variables.builtin import BuiltinVariable

    def is_asked(tx: Any, arg: Any) -> bool:
        try:
            traced = issubclass(arg.python_type(), TracedTensor)
            return traced and not tx.f_code.co_filename.startswith(_OWN)
        except (AttributeError, NotImplementedError, TypeError):
            return False

    builtin: Any = BuiltinVariable
    inner = builtin.call_isinstance

    def call_isinstance(self: Any, tx: Any, arg: Any, types: Any) -> Any:
        if not is_asked(tx, arg):
            return inner(self, tx, arg, types)
        return VariableTracker.build(tx, issubclass(Tensor, types.as_python_constant()))

    builtin.call_isinstance = call_isinstance
    inner_type = builtin.call_type

    def call_type(self: Any, tx: Any, arg: Any, *more: Any) -> Any:
        if more or not is_asked(tx, arg):
            return inner_type(self, tx, arg, *more)
        return VariableTracker.build(tx, Tensor)

    builtin.call_type = call_type


_IN_PLACE = frozenset(
    f"__i{name}__"
    for name in (
        *("add", "sub", "mul", "matmul", "truediv", "floordiv", "mod", "pow"),
        *("and", "or", "xor", "lshift", "rshift"),
    )
)


def _break_at_operators_in_place() -> None:
    """Patch ``x += y`` to break the graph where `x` is an at.Tensor from outside.

    torch 2.13 looks for the method of a compiled class until its stack is full.
    """
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.variables.user_defined import UserDefinedObjectVariable

    variable: Any = UserDefinedObjectVariable
    inner = variable.call_method

    def call_method(self: Any, tx: Any, name: str, *arguments: Any, **named: Any) -> Any:
        if name in _IN_PLACE and isinstance(self.value, Tensor):
            raise Unsupported(f"at.Tensor.{name} is not traced.")
        return inner(self, tx, name, *arguments, **named)

    variable.call_method = call_method


def _refuse_strangers() -> None:
    """Refuse an array as an input of a graph that has a tensor of the same memory.

    The graph would not know that they share it, and reorder reads and writes.
    """
    from torch._dynamo.exc import Unsupported
    from torch._dynamo.variables.builder import VariableBuilder

    builder: Any = VariableBuilder
    inner = builder.wrap_numpy_ndarray

    def wrap_numpy_ndarray(self: Any, value: Any) -> Any:
        for x in list(getattr(self.tx, "f_locals", {}).values()):
            if isinstance(x, torch.Tensor) and shares_memory(x, value):
                raise Unsupported(
                    "A NumPy array has the memory of a tensor that is an argument, too."
                )
        return inner(self, value)

    builder.wrap_numpy_ndarray = wrap_numpy_ndarray
