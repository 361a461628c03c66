# SPDX-License-Identifier: Apache-2.0
"""What the functions of brew have in common: arguments from scopes, and parameters.

Follows caffe2/python/brew.py and caffe2/python/helpers/arg_scope.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.models.model_helper import (
    ExternalInitializer,
    Initializer,
    ModelHelper,
    ParameterTags,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "BIAS",
    "COMPUTED",
    "WEIGHT",
    "XAVIER",
    "ZEROS",
    "arg_scope",
    "constant",
    "has_helper",
    "helper",
    "helpers_by_name",
    "on_cudnn",
    "parameter",
]

# What layers fill parameters by, an operator and its arguments, where they are not told.
Fill = tuple[str, "dict[str, Any]"]
XAVIER: Fill = ("XavierFill", {})
ZEROS: Fill = ("ConstantFill", {})

WEIGHT, BIAS, COMPUTED = ParameterTags.WEIGHT, ParameterTags.BIAS, ParameterTags.COMPUTED_PARAM

helpers_by_name: dict[str, Callable[..., Any]] = {}


class _Scopes(threading.local):
    arguments: dict[str, dict[str, Any]]

    def __init__(self) -> None:
        self.arguments = {}


_scopes = _Scopes()


@contextmanager
def arg_scope(helpers: Any, **kwargs: Any) -> Iterator[None]:
    """Return arguments to each call of these functions of brew, one or a list, that is made within.

    Raises EnforceNotMet, also an AssertionError: one of them is no function.
    """
    every = helpers if isinstance(helpers, list) else [helpers]
    for helper in every:
        if not callable(helper):
            raise EnforceAssertionError(
                f"arg_scope takes functions of brew, not {helper!r}.", "brew.arg_scope"
            )
    before = _scopes.arguments
    _scopes.arguments = {
        **before,
        **{one.__name__: {**before.get(one.__name__, {}), **kwargs} for one in every},
    }
    try:
        yield
    finally:
        _scopes.arguments = before


def has_helper(helper_or_helper_name: Any) -> bool:
    """Return whether there is a function of that name."""
    name = getattr(helper_or_helper_name, "__name__", helper_or_helper_name)
    return name in helpers_by_name


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make what gives `function` the arguments of the scopes that it takes."""
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    takes_all = any(one.kind is one.VAR_KEYWORD for one in parameters)
    names = {one.name for one in parameters}

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        model = kwargs.get("model", args[0] if args else None)
        if not isinstance(model, ModelHelper):
            raise EnforceNotMet(
                "The first input of a helper function is a model, or it comes as model=.",
                f"brew.{name}",
            )
        given = {key: value for key, value in model.arg_scope.items() if takes_all or key in names}
        return function(*args, **{**given, **_scopes.arguments.get(name, {}), **kwargs})

    helpers_by_name[name] = called
    return called


def parameter(
    model: ModelHelper, name: Any, shape: list[int], initializer: Any, fill: Any, tags: Any
) -> Any:
    """Make a parameter: by `initializer`, by `fill`, an operator and its arguments, or not."""
    if not model.init_params:
        initializer = ExternalInitializer()
    elif initializer is None:
        initializer = Initializer(fill[0], **fill[1])
    elif isinstance(initializer, type):
        initializer = initializer(*fill[:1], **fill[1])
    return model.create_param(name, shape, initializer, tags)


def constant(value: float) -> Fill:
    """Return what fills a parameter with one number."""
    return "ConstantFill", {"value": value}


def on_cudnn(exhaustive_search: bool, ws_nbytes_limit: int | None = None) -> dict[str, Any]:
    """Return the arguments of a convolution that prefers cuDNN."""
    limit = {"ws_nbytes_limit": ws_nbytes_limit} if ws_nbytes_limit else {}
    return {"engine": "CUDNN", "exhaustive_search": exhaustive_search, **limit}
