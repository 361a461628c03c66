# SPDX-License-Identifier: Apache-2.0
"""The functions that operators of type Python call, and CreatePythonOperator.

A message cannot hold a function. It holds a token, which identifies a function of this process, or
a pickled call that returns a function. Only calls that this process pickled are executed; see
`unpickled_function`. Follows caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet, EnforceTypeError
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.definitions.create_operator import CreateOperator

# The token of a gradient is the token of its function with this suffix.
GRADIENT = "_gradient"

# By token, the function and whether it receives the workspace.
functions: dict[str, tuple[Callable[..., Any], bool]] = {}
_numbers = itertools.count()
# The bytes that this process pickled; no others are unpickled.
_builders: set[bytes] = set()


def _register(f: Any, grad_f: Any, python_func_type: Any, pass_workspace: bool) -> str:
    """Register `f`, and `grad_f` as its gradient; return the token of `f`.

    Raises EnforceNotMet, also a TypeError: one of them cannot be called.
    """
    if python_func_type is not None:
        of_type = python_func_type(f)
        f, grad_f = of_type.forward, getattr(of_type, "backward", None)
    if grad_f and not callable(grad_f):
        raise EnforceTypeError(
            f"The gradient of a Python operator must be a function, not {type(grad_f).__name__}.",
            "register_python_gradient_op",
            condition="callable(grad_f)",
        )
    if not callable(f):
        raise EnforceTypeError(
            f"A Python operator needs a function, not {type(f).__name__}.",
            "register_python_op",
            condition="callable(f)",
        )
    token = f"{getattr(f, '__qualname__', type(f).__qualname__)}:{next(_numbers)}"
    functions[token] = (f, pass_workspace)
    if grad_f:
        functions[token + GRADIENT] = (grad_f, False)
    return token


def python_arguments(
    f: Any, grad_f: Any, python_func_type: Any, pass_workspace: bool
) -> dict[str, Any]:
    """Return the arguments of an operator of type Python that calls `f`; see ``Net.Python``."""
    if python_func_type is not None:
        return {"token": _register(f, None, python_func_type, pass_workspace)}
    if isinstance(f, tuple) != isinstance(grad_f, tuple) and grad_f is not None:
        raise EnforceAssertionError(
            "A tuple has to be passed to both f and grad_f or neither.", "Net.Python"
        )
    if not isinstance(f, tuple):
        return {"token": _register(f, grad_f, None, pass_workspace)}
    return {
        "pickled_builder": _pickled(f),
        "pickled_grad_builder": _pickled(grad_f) if grad_f else "",
        "pass_workspace": pass_workspace,
    }


def _check_builder(builder: tuple[Any, ...], caller: str) -> None:
    if len(builder) != 3:
        raise EnforceAssertionError(
            "A builder must be a tuple (function, args, kwargs).", caller, condition="len(f) == 3"
        )


def _called(builder: tuple[Any, ...]) -> Any:
    _check_builder(builder, "CreatePythonOperator")
    function, args, kwargs = builder
    return function(*args, **kwargs)


def _pickled(builder: tuple[Any, ...]) -> bytes:
    _check_builder(builder, "Net.Python")
    import pickle

    function, args, kwargs = builder
    with wrapping("The builder of a function cannot be pickled", "Net.Python"):
        pickled = pickle.dumps((function, tuple(args), dict(kwargs)))
    _builders.add(pickled)
    return pickled


def unpickled_function(pickled: bytes) -> Callable[..., Any]:
    """Return the function that a pickled call returns.

    Raises EnforceNotMet: `pickled` is empty, or was not pickled by this process. Errors of the call
    are not wrapped.
    """
    if not pickled:
        raise EnforceNotMet(
            "A Python operator needs a token or a pickled_builder, and its gradient a grad_f; "
            "core.CreatePythonOperator and net.Python create it.",
            "Python",
        )
    if pickled not in _builders:
        raise EnforceNotMet(
            "The pickled_builder was not pickled by this process. It is not unpickled, since that "
            "could run any code.",
            "Python",
        )
    import pickle

    function, args, kwargs = pickle.loads(pickled)
    result: Callable[..., Any] = function(*args, **kwargs)
    return result


def CreatePythonOperator(
    f: Any,
    inputs: Any,
    outputs: Any,
    grad_f: Any = None,
    pass_workspace: bool = False,
    python_func_type: Any = None,
    *args: Any,
    **kwargs: Any,
) -> Any:
    """Return an OperatorDef of type Python that calls ``f(inputs, outputs)``.

    `f` receives lists of the blobs' tensors (`BlobTensor`), and the workspace as well with
    `pass_workspace`. A tuple ``(function, args, kwargs)`` is called at once and returns the
    function. `grad_f` computes the gradient; see ``Net.Python``. Further arguments are as of
    `CreateOperator`.

    Raises EnforceNotMet, also a TypeError: a function cannot be called.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> def double(inputs, outputs):
    ...     outputs[0].feed(2 * inputs[0].data)
    >>> workspace.FeedBlob("x", np.arange(3.0))
    True
    >>> workspace.RunOperatorOnce(core.CreatePythonOperator(double, ["x"], ["y"]))
    True
    >>> workspace.FetchBlob("y")
    array([0., 2., 4.])
    >>> workspace.ResetWorkspace()
    True
    """
    if python_func_type is None:
        f, grad_f = (_called(one) if isinstance(one, tuple) else one for one in (f, grad_f))
    kwargs["token"] = _register(f, grad_f, python_func_type, pass_workspace)
    return CreateOperator("Python", inputs, outputs, *args, **kwargs)
