# SPDX-License-Identifier: Apache-2.0
"""NumPy's functions and ufuncs on the bridge's tensors (NEP 18, 13), on the shared memory."""

from __future__ import annotations

from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceValueError
from bridge.c10.handle import Handle
from bridge.exchange.numpy import export_array
from bridge.exchange.torch_api import has_tangent, is_torch_tensor
from bridge.exchange.torch_import import refuse_gradient

# The ufunc that NumPy calls for a binary operator -> the method of its right operand.
REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "floor_divide": "__rfloordiv__",
    "remainder": "__rmod__",
    "divmod": "__rdivmod__",
    "power": "__rpow__",
    "matmul": "__rmatmul__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__",
    "right_shift": "__rrshift__",
    "equal": "__eq__",
    "not_equal": "__ne__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
}


def call_numpy(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what `function` of NumPy gives for arrays of the same memory in place of tensors.

    Tensors whose memory NumPy cannot hold, such as those on a device, are left to NumPy.

    Raises BufferError: a torch.Tensor beside them has a tangent of forward-mode autograd.
    """
    _refuse_tangents((*args, *kwargs.values()))
    found: list[Handle] = []
    try:
        plain_args = _with_arrays(args, found)
        plain_kwargs = {name: _with_arrays(value, found) for name, value in kwargs.items()}
    except BufferError:
        found.clear()
    if not found:
        # NumPy saw tensors elsewhere: in another container, or in `like`, which it has removed and
        # whose functions have no other implementation
        return getattr(function, "_implementation", function)(*args, **kwargs)
    return function(*plain_args, **plain_kwargs)


def call_ufunc(ufunc: Any, method: str, inputs: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return what `method` of a ufunc gives for arrays of the same memory in place of tensors.

    A tensor in ``out=`` is written and returned; so is the first argument of ``ufunc.at``.

    Raises EnforceNotMet, also a ValueError: such a tensor is read-only. BufferError: memory that
    NumPy cannot hold, or as `call_numpy`.
    """
    _refuse_tangents(inputs)
    given = kwargs.get("out", ())
    outputs = given if isinstance(given, tuple) else (given,)
    for written in (*outputs, *(inputs[:1] if method == "at" else ())):
        if isinstance(written, Handle) and _exported(written).get_storage().readonly:
            raise EnforceValueError(
                "The memory is read-only. Write to a clone().",
                f"numpy.{ufunc.__name__}",
                condition="!readonly",
            )
    found: list[Handle] = []
    arrays = _with_arrays(inputs, found)
    named = {name: _with_arrays(value, found) for name, value in kwargs.items()}
    results = getattr(ufunc, method)(*arrays, **named)
    if not outputs:
        return results
    if not isinstance(results, tuple):
        return results if outputs[0] is None else outputs[0]
    return tuple(
        result if output is None else output
        for result, output in zip(results, outputs, strict=True)
    )


def _with_arrays(x: Any, found: list[Handle]) -> Any:
    """Return `x` with an array for each tensor in it, which is added to `found`."""
    if isinstance(x, Handle):
        found.append(x)
        return export_array(_exported(x), "__array_function__")
    if type(x) is list:
        return [_with_arrays(item, found) for item in x]
    if type(x) is tuple:
        return tuple(_with_arrays(item, found) for item in x)
    return x


def _refuse_tangents(x: Any) -> None:
    """Raise BufferError for a dual tensor of torch in `x`: its array would lack the tangent."""
    if type(x) is list or type(x) is tuple:
        for item in x:
            _refuse_tangents(item)
    elif is_torch_tensor(x) and has_tangent(x):
        refuse_gradient(x)


def _exported(x: Handle) -> Any:
    """Return the TensorImpl of a tensor, as exporters take it."""
    from bridge.exchange.conversion import export_source

    return export_source(x, None)
