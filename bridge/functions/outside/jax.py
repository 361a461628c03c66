# SPDX-License-Identifier: Apache-2.0
"""JAX outside: the function runs at once where all is known, and else by ``pure_callback``.

Derivatives are a ``custom_vjp`` whose backward pass is one itself. Values that a callback gets lie
in memory of XLA that is gone when it returns, so they are copied.
"""

from __future__ import annotations

from functools import partial

import jax
import jax.custom_derivatives
import jax.numpy
import numpy

from bridge.annotation import Any
from bridge.functions import crossing
from bridge.functions.call import Call
from bridge.functions.outcome import Spec
from bridge.functions.traced import Forward, Operation, Pull

DETACH = "jax.lax.stop_gradient(x), JAX's detach(), outside of jit and grad"
# whether `call` is for calls without tracked tensors, too
ALWAYS = True
_under_trace = jax.jit(lambda: 0)
_shape: Any = jax.ShapeDtypeStruct
_SymbolicZero = jax.custom_derivatives.SymbolicZero


def is_tracked(x: Any) -> bool:
    """Return whether `x` is a tracer, which may be differentiated."""
    return isinstance(x, jax.core.Tracer)


def is_differentiated(x: Any) -> bool:
    """Return False: a tracer does not tell; `call` finds out when it is differentiated."""
    return False


def call(inside: Any, call: Call, tracked: list[int]) -> Any:
    """Return the result of the function, which JAX may transform."""
    if not tracked and not isinstance(_under_trace(), jax.core.Tracer):
        return crossing.run(inside, call, "jax")
    symbols = [number for number, library in enumerate(call.libraries) if library == "jax"]
    fixed = {
        number: inside.arrive(call.tensors[number], library, True)
        for number, library in enumerate(call.libraries)
        if library != "jax"
    }
    arrays = [call.tensors[number] for number in symbols]
    forward = Forward(inside, call, symbols, fixed)
    forward.floats = [number for number, x in enumerate(arrays) if _is_floating(x)]
    if hasattr(inside, "record"):
        results = _differentiable(forward)(*arrays)
    else:
        results = _without_gradients(forward)(*arrays)
    assert forward.results is not None
    return forward.results.rebuild(list(results))


def _is_floating(x: Any) -> bool:
    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.floating))


def _is_complex(x: Any) -> bool:
    return bool(jax.numpy.issubdtype(x.dtype, jax.numpy.complexfloating))


class _Perturbed:
    """The inputs that are differentiated, as a forward pass tells its backward pass."""

    def __init__(self, flags: tuple[bool, ...]) -> None:
        self.flags = flags


jax.tree_util.register_pytree_node(
    _Perturbed, lambda x: ((), x.flags), lambda flags, _: _Perturbed(flags)
)


def _differentiable(operation: Operation, recorded: bool = False) -> Any:
    """Return the operation as a function of JAX arrays; `recorded`: with a token as last result."""

    def apply(*inputs: Any) -> tuple[Any, ...]:
        return _applied(operation, recorded, inputs)

    def forward(*primals: Any) -> tuple[Any, Any]:
        values = tuple([x.value for x in primals])
        flags = tuple([bool(x.perturbed) for x in primals])
        for x, flag in zip(values, flags, strict=True):
            if flag and _is_complex(x):
                raise crossing.complex_error()
        results = _differentiable(operation, True)(*values)
        token = results[-1]
        return results if recorded else results[:-1], (values, token, _Perturbed(flags))

    def backward(saved: Any, cotangents: Any) -> tuple[Any, ...]:
        values, token, perturbed = saved
        cotangents = cotangents[:-1] if recorded else cotangents
        given = [not isinstance(x, _SymbolicZero) and _has_gradient(x) for x in cotangents]
        wanted = [i for i, number in enumerate(operation.floats) if perturbed.flags[number]]
        pull = Pull(operation, wanted, given)
        kept = [x for x, is_given in zip(cotangents, given, strict=True) if is_given]
        found = _differentiable(pull)(*values, token, *kept) if any(given) and wanted else ()
        gradients: list[Any] = [None] * len(values)
        for i, x in zip(wanted, found, strict=False):
            gradients[operation.floats[i]] = x
        return tuple(gradients)

    function = jax.custom_vjp(apply)
    function.defvjp(forward, backward, symbolic_zeros=True)
    return function


def _has_gradient(cotangent: Any) -> bool:
    """Return whether a cotangent is of a floating result. Raises BufferError: it is complex."""
    if _is_complex(cotangent):
        raise crossing.complex_error()
    return bool(cotangent.dtype != jax.dtypes.float0)


def _without_gradients(operation: Operation) -> Any:
    function = jax.custom_jvp(lambda *inputs: _applied(operation, False, inputs))

    def refuse(primals: Any, tangents: Any) -> Any:
        if any(not isinstance(x, _SymbolicZero) and x.dtype != jax.dtypes.float0 for x in tangents):
            library = type(operation.inside).__module__.rpartition(".")[2]
            raise crossing.drop_error("jax", f"{library} has no gradients", DETACH)
        results = function(*primals)
        return results, tuple([_zero_tangent(x) for x in results])

    function.defjvp(refuse, symbolic_zeros=True)
    return function


def _zero_tangent(x: Any) -> Any:
    if jax.numpy.issubdtype(x.dtype, jax.numpy.inexact):
        return jax.numpy.zeros_like(x)
    return numpy.zeros(x.shape, jax.dtypes.float0)


def _applied(operation: Operation, recorded: bool, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    # (Python's numbers come as objects of JAX that are not arrays)
    inputs = tuple([x if isinstance(x, jax.Array) else jax.numpy.asarray(x) for x in inputs])
    if not any(isinstance(x, jax.core.Tracer) for x in inputs):
        return tuple(_at_once(operation, recorded, inputs))
    specs = [
        _shape(spec.shape, _dtype(spec.dtype))
        for spec in operation.specs([Spec(tuple(x.shape), x.dtype.name) for x in inputs])
    ]
    if recorded:
        state = operation.inside.random_state() or b""
        specs.append(_shape((operation.inside.records.size(state),), numpy.uint8))
    host = partial(_called_back, operation, recorded, specs)
    return tuple(jax.pure_callback(host, specs, *inputs, vmap_method="sequential"))


def _dtype(name: str) -> Any:
    from bridge.c10.type_meta import TypeMeta

    dtype = numpy.dtype(TypeMeta.Make(name).numpy)
    if jax.dtypes.canonicalize_dtype(dtype) != dtype:
        raise BufferError(
            f"A result is of {name}, and JAX would truncate it to 32 bits while jax_enable_x64 is "
            "off. Turn it on with jax.config.update('jax_enable_x64', True), or convert the result."
        )
    return dtype


def _at_once(operation: Operation, recorded: bool, inputs: Any) -> list[Any]:
    """Return the results as JAX arrays. A token keeps its node as long as it lives itself."""
    from bridge.front import to_jax

    tensors = _arrived(operation, inputs, "jax")
    if recorded:
        found, node = operation.record(tensors)
    else:
        found = operation.run(tensors)
    results = []
    for number, x in enumerate(found):
        if x is None:
            spec = operation.specs([Spec(tuple(y.shape), y.dtype.name) for y in inputs])[number]
            results.append(jax.numpy.zeros(spec.shape, spec.dtype))
        else:
            results.append(crossing.deliver(x, "jax", operation.inside.own))
    if recorded:
        results.append(to_jax(operation.inside.records.token(node)))
    return results


def _arrived(operation: Operation, inputs: Any, library: str) -> list[Any]:
    return [
        numpy.asarray(x) if operation.is_token(i) else operation.inside.arrive(x, library)
        for i, x in enumerate(inputs)
    ]


def _called_back(operation: Operation, recorded: bool, specs: list[Any], *inputs: Any) -> list[Any]:
    """Return the results as NumPy arrays, from which XLA copies."""
    from bridge.front import to_numpy

    inside = operation.inside
    copies = [numpy.array(x) for x in inputs]
    for x in copies:
        x.flags.writeable = False
    tensors = _arrived(operation, copies, "jax")
    if recorded:
        inside.records.drop_used()
        state = inside.random_state() or b""
        found, node = operation.record(tensors)
    else:
        found = operation.run(tensors)
    results = []
    for x, spec in zip(found, specs, strict=False):
        if x is None:
            results.append(numpy.zeros(spec.shape, spec.dtype))
            continue
        array = to_numpy(x)
        if array.shape != spec.shape or array.dtype != spec.dtype:
            raise ValueError(
                f"The function returned a tensor of {array.dtype} with the shape {array.shape}, "
                f"and {spec.dtype} with the shape {spec.shape} when its shapes were found. Shapes "
                "may not depend on values in jit and vmap."
            )
        results.append(array)
    if recorded:
        results.append(inside.records.keep(node, state))
    return results
