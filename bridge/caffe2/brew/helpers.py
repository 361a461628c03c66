# SPDX-License-Identifier: Apache-2.0
"""Helpers of the functions of `brew`: arguments from scopes, and the creation of parameters.

Follows caffe2/python/brew.py and caffe2/python/helpers/arg_scope.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import functools
import inspect
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2.base.wrapped_errors import EnforceAttributeError
from bridge.caffe2.definitions.blob_reference import ScopedBlobReference
from bridge.caffe2.modeling.initializers import ExternalInitializer, Initializer
from bridge.caffe2.modeling.model_helper import ModelHelper
from bridge.caffe2.modeling.parameter_info import ParameterTags

# An operator that fills a parameter, and its arguments.
Fill = tuple[str, "dict[str, Any]"]
XAVIER: Fill = ("XavierFill", {})
ZEROS: Fill = ("ConstantFill", {})

WEIGHT, BIAS, COMPUTED = ParameterTags.WEIGHT, ParameterTags.BIAS, ParameterTags.COMPUTED_PARAM

# The functions of `brew`, as `helper` returned them.
helpers_by_name: dict[str, Callable[..., Any]] = {}


class _Scopes(threading.local):
    arguments: dict[str, dict[str, Any]]

    def __init__(self) -> None:
        self.arguments = {}


_scopes = _Scopes()


@contextmanager
def arg_scope(helpers: Any, **kwargs: Any) -> Iterator[None]:
    """Pass keyword arguments to each call of a function of brew within the scope.

    helpers: a function of brew or a list of them. Arguments of an inner scope override the ones of
    the scopes around it; arguments of the call override both.

    Raises EnforceNotMet, also an AssertionError: one of `helpers` cannot be called.
    """
    functions = helpers if isinstance(helpers, list) else [helpers]
    for function in functions:
        if not callable(function):
            raise EnforceAssertionError(
                f"arg_scope takes functions of brew, not {function!r}.", "brew.arg_scope"
            )
    outer = _scopes.arguments
    _scopes.arguments = {
        **outer,
        **{one.__name__: {**outer.get(one.__name__, {}), **kwargs} for one in functions},
    }
    try:
        yield
    finally:
        _scopes.arguments = outer


def has_helper(helper_or_helper_name: Any) -> bool:
    """Return whether brew has a function of that name."""
    name = getattr(helper_or_helper_name, "__name__", helper_or_helper_name)
    return name in helpers_by_name


def helper(function: Callable[..., Any]) -> Callable[..., Any]:
    """Register a function of brew; return a wrapper that adds the arguments of the scopes.

    The arguments of the model's `arg_scope` are added where the function has such parameters.
    """
    name = function.__name__
    parameters = inspect.signature(function).parameters.values()
    takes_any = any(one.kind is one.VAR_KEYWORD for one in parameters)
    names = {one.name for one in parameters}

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        model = kwargs.get("model", args[0] if args else None)
        if not isinstance(model, ModelHelper):
            raise EnforceNotMet(
                "The first input of a helper function must be a ModelHelper, or be passed as "
                "model=.",
                f"brew.{name}",
            )
        defaults = {
            key: value for key, value in model.arg_scope.items() if takes_any or key in names
        }
        return function(*args, **{**defaults, **_scopes.arguments.get(name, {}), **kwargs})

    helpers_by_name[name] = wrapper
    return wrapper


def Register(helper_function: Callable[..., Any]) -> None:
    """Make a function available as ``brew.NAME(model, ...)``, under its own name.

    Raises EnforceNotMet, also an AttributeError: brew has a function of that name.
    """
    name = helper_function.__name__
    if name in helpers_by_name:
        raise EnforceAttributeError(f"Helper {name} already exists.", "brew.Register")
    helper(helper_function)


# Functions of Caffe2's ``caffe2.python.helpers``, which an old PyTorch provides; see `install`.
_ELSEWHERE = {
    **dict.fromkeys(("fc_decomp", "fc_prune", "fc_sparse", "packed_fc"), "fc"),
    **dict.fromkeys(("image_input", "video_input"), "tools"),
}


def find_helper(name: str) -> Callable[..., Any] | None:
    """Return a function that was registered, or one of an old PyTorch; None: there is none."""
    if name in _ELSEWHERE and name not in helpers_by_name:
        helper(getattr(import_module(f"caffe2.python.helpers.{_ELSEWHERE[name]}"), name))
    return helpers_by_name.get(name)


def parameter(
    model: ModelHelper, name: Any, shape: list[int], initializer: Any, fill: Fill, tags: Any
) -> Any:
    """Create a parameter of a model; return a reference to its blob.

    initializer: an initializer, or a class of them, which is constructed from `fill`; None is
    `Initializer`. A model with init_params=False gets no operator: the blob is expected to be in
    the workspace.
    """
    if not model.init_params:
        initializer = ExternalInitializer()
    elif initializer is None:
        initializer = Initializer(fill[0], **fill[1])
    elif isinstance(initializer, type):
        initializer = initializer(*fill[:1], **fill[1])
    return model.create_param(name, shape, initializer, tags)


def listed_parameter(model: ModelHelper, name: Any, shape: list[int], fill: Any, tag: str) -> Any:
    """Create a parameter as older layers of Caffe2 do; return a reference to its blob.

    Unlike `parameter` it takes no initializer, and the model has no ParameterInfo of it before
    AddGradientOperators.
    """
    if model.init_params:
        blob = getattr(model.param_init_net, fill[0])([], name, shape=shape, **fill[1])
    else:
        blob = ScopedBlobReference(name, model.param_init_net)
    model.AddParameter(blob, tag)
    return blob


def constant(value: float) -> Fill:
    """Return the operator that fills a parameter with `value`, and its arguments."""
    return "ConstantFill", {"value": value}


def cudnn_arguments(exhaustive_search: bool, ws_nbytes_limit: int | None = None) -> dict[str, Any]:
    """Return the arguments of a convolution that prefers cuDNN; the limit is in bytes."""
    limit = {"ws_nbytes_limit": ws_nbytes_limit} if ws_nbytes_limit else {}
    return {"engine": "CUDNN", "exhaustive_search": exhaustive_search, **limit}
