# SPDX-License-Identifier: Apache-2.0
"""Libraries as old modules know them: stand-ins, and views with the names that were dropped since.

Stand-ins are for ``future``, ``past`` and ``six``, which old modules use to run on Python 2 too.
They have the names that Caffe2's modules have used, and are used where the libraries are not
installed. Views are of NumPy, SciPy and others.
"""

from __future__ import annotations

import importlib
from collections import namedtuple
from collections.abc import Callable, Generator, Sequence
from functools import cache
from importlib.util import find_spec
from types import ModuleType

from bridge.annotation import Any
from bridge.caffe2.legacy import onnx_models


def _with_metaclass(meta: type, *bases: type) -> type:
    """Return a base class whose subclasses have the metaclass `meta` and the bases `bases`."""

    class Meta(type):
        def __new__(cls, name: str, _: tuple[type, ...], body: dict[str, Any]) -> Any:
            return meta(name, bases, body)

    return type.__new__(Meta, "temporary_class", (), {})


def _add_metaclass(meta: type) -> Callable[[type], type]:
    """Return a decorator that makes a class anew with the metaclass `meta`."""

    def make(cls: type) -> type:
        body = {k: v for k, v in vars(cls).items() if k not in ("__dict__", "__weakref__")}
        made: type = meta(cls.__name__, cls.__bases__, body)
        return made

    return make


def _raise_from(error: BaseException, cause: BaseException | None) -> None:
    raise error from cause


def _reraise(kind: type, value: BaseException | None, traceback: Any = None) -> None:
    raise (kind() if value is None else value).with_traceback(traceback)


def _same(one: Any) -> Any:
    return one


def _text(one: Any) -> str:
    return one.decode() if isinstance(one, bytes) else str(one)


def _bytes(one: Any) -> bytes:
    return one if isinstance(one, bytes) else str(one).encode("latin-1")


_COMMON: dict[str, Any] = {
    "PY2": False,
    "PY3": True,
    "binary_type": bytes,
    "integer_types": (int,),
    "iteritems": lambda mapping: iter(mapping.items()),
    "iterkeys": lambda mapping: iter(mapping.keys()),
    "itervalues": lambda mapping: iter(mapping.values()),
    "python_2_unicode_compatible": _same,
    "raise_from": _raise_from,
    "reraise": _reraise,
    "string_types": (str,),
    "text_type": str,
    "viewitems": lambda mapping: mapping.items(),
    "viewkeys": lambda mapping: mapping.keys(),
    "viewvalues": lambda mapping: mapping.values(),
    "with_metaclass": _with_metaclass,
}
_PYTHON_2_TYPES: dict[str, Any] = {"basestring": (str, bytes), "long": int, "unicode": str}
_NAMES: dict[str, dict[str, Any]] = {
    "future": {},
    "future.utils": {
        **_COMMON,
        "bytes_to_native_str": _text,
        "lmap": lambda *arguments: list(map(*arguments)),
        "lrange": lambda *arguments: list(range(*arguments)),
        "lzip": lambda *arguments: list(zip(*arguments, strict=False)),
        "native_str": str,
        "native_str_to_bytes": _bytes,
    },
    "past": {},
    "past.builtins": {
        **_PYTHON_2_TYPES,
        "map": lambda *arguments: list(map(*arguments)),
        "range": lambda *arguments: list(range(*arguments)),
        "xrange": range,
    },
    "six": {
        **_COMMON,
        "add_metaclass": _add_metaclass,
        "b": _bytes,
        "class_types": (type,),
        "ensure_str": _text,
        "u": _same,
    },
    "six.moves": {
        "input": input,
        "map": map,
        "range": range,
        "reduce": importlib.import_module("functools").reduce,
        "xrange": range,
        "zip": zip,
    },
}
# Modules of the standard library, under six's names; modules of urllib have the same below it.
_MOVED = {
    "mock": "unittest.mock",
    "six.StringIO": "io.StringIO",
    "six.BytesIO": "io.BytesIO",
    "six.moves.configparser": "configparser",
    "six.moves.cPickle": "pickle",
    "six.moves.queue": "queue",
    "six.moves.urllib": "urllib",
    "six.moves.urllib.error": "urllib.error",
    "six.moves.urllib.parse": "urllib.parse",
    "six.moves.urllib.request": "urllib.request",
}


# Modules that onnx had.
_OF_ONNX = {"onnx.mapping": onnx_models.mapping, "onnx.optimizer": onnx_models.optimizer}


class _StandIn(ModuleType):
    """A module with the names of one of the libraries."""

    def __getattr__(self, name: str) -> Any:
        whole = f"{self.__name__}.{name}"
        found = _module(whole)
        if found is None and whole in _MOVED:
            module, _, attribute = _MOVED[whole].rpartition(".")
            return getattr(importlib.import_module(module), attribute)
        if found is None:
            raise AttributeError(
                f"{self.__name__} is not installed, and its stand-in has no {name!r}: pip install "
                f"{self.__name__.partition('.')[0]}"
            )
        return found


_made: dict[str, ModuleType] = {}


def _module(name: str) -> ModuleType | None:
    """Return the stand-in for a module, None if there is none."""
    if name in _OF_ONNX:
        return _OF_ONNX[name]
    if name in _MOVED and not _MOVED[name].startswith("io."):
        return importlib.import_module(_MOVED[name])
    if name not in _NAMES:
        return None
    if name not in _made:
        _made[name] = made = _StandIn(name)
        vars(made).update(_NAMES[name])
    return _made[name]


def stand_in(name: str, names: Sequence[str] | None) -> ModuleType | None:
    """Return the module that ``from name import names`` or ``import name`` reads, or None."""
    found, top = _module(name), name.partition(".")[0]
    if name in _OF_ONNX:
        if find_spec(top) is None:
            return None
        return found if names else old_view(importlib.import_module(top))
    if found is None or names:
        return found
    return _module(top)


class _View(ModuleType):
    """A view of a module, with further names; attributes set on it stay with the old modules.

    own: names and their values, in place of the module's. renamed: names of the past, and those
    that they have today.
    """

    def __init__(self, module: ModuleType, own: dict[str, Any], renamed: dict[str, str]) -> None:
        super().__init__(module.__name__, module.__doc__)
        self.__dict__.update(own, _module=module, _renamed=renamed)

    def __getattr__(self, name: str) -> Any:
        module, renamed = self.__dict__["_module"], self.__dict__["_renamed"]
        # A version of the library that still has the old name knows best.
        value = getattr(module, name if hasattr(module, name) else renamed.get(name, name))
        if isinstance(value, ModuleType):
            value = old_view(value)
        self.__dict__[name] = value
        return value

    def __dir__(self) -> list[str]:
        return sorted({*dir(self.__dict__["_module"]), *self.__dict__})


# NumPy's names for Python's own types. NumPy 2 has `bool` too, for its own type.
_PYTHON_TYPES = {
    "bool": bool,
    "complex": complex,
    "float": float,
    "int": int,
    "long": int,
    "object": object,
    "str": str,
    "unicode": str,
}
_RENAMED_IN_NUMPY = {
    "Inf": "inf",
    "Infinity": "inf",
    "NaN": "nan",
    "alltrue": "all",
    "complex_": "complex128",
    "cumproduct": "cumprod",
    "float_": "float64",
    "in1d": "isin",
    "infty": "inf",
    "product": "prod",
    "round_": "round",
    "row_stack": "vstack",
    "sometrue": "any",
    "string_": "bytes_",
    "trapz": "trapezoid",
    "unicode_": "str_",
}


def _asscalar(a: Any) -> Any:
    return a.item()


def _sum(a: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the sum of an array, or of the values of a generator."""
    import numpy as np

    return sum(a) if isinstance(a, Generator) else np.sum(a, *args, **kwargs)


def _interp2d(x: Any, y: Any, z: Any, kind: str = "linear") -> Any:
    """Return a function of points (x, y) that interpolates `z`, the values on a grid.

    Raises NotImplementedError: they are not on a grid.
    """
    import numpy as np
    from scipy.interpolate import RectBivariateSpline  # type: ignore[import-untyped]

    values = np.asarray(z)
    if values.size != len(x) * len(y):
        raise NotImplementedError("interp2d interpolates values on a grid of x and y")
    degree = {"linear": 1, "cubic": 3, "quintic": 5}[kind]
    found = RectBivariateSpline(x, y, values.reshape(len(y), len(x)).T, kx=degree, ky=degree)
    return lambda xs, ys: found(np.atleast_1d(xs), np.atleast_1d(ys)).T


_ArgSpec = namedtuple("_ArgSpec", ["args", "varargs", "keywords", "defaults"])


def _getargspec(func: Any) -> _ArgSpec:
    """Return the names of the parameters of a function, as Python before 3.11 did."""
    import inspect

    return _ArgSpec(*inspect.getfullargspec(func)[:4])


def _topological_sort(graph: Any) -> Any:
    """Yield the nodes of a graph as networkx before 2.6 did: the last that is ready comes first."""
    import networkx  # type: ignore[import-untyped]

    missing = dict(graph.in_degree())
    ready = [node for node, count in missing.items() if count == 0]
    done = 0
    while ready:
        node = ready.pop()
        done += 1
        for _, child in graph.edges(node):
            missing[child] -= 1
            if missing[child] == 0:
                ready.append(child)
        yield node
    if done < len(missing):
        raise networkx.NetworkXUnfeasible("Graph contains a cycle.")


def _digraph(*args: Any, **kwargs: Any) -> Any:
    """Return a directed graph whose nodes are ``graph.node`` too, as before networkx 2.4."""
    return _digraph_class()(*args, **kwargs)


@cache
def _digraph_class() -> Any:
    import networkx

    class DiGraph(networkx.DiGraph):  # type: ignore[misc]
        node = property(lambda self: self.nodes)

    return DiGraph


_VIEWS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "onnx": ({"mapping": onnx_models.mapping, "optimizer": onnx_models.optimizer}, {}),
    "onnx.utils": ({"polish_model": onnx_models.polish_model}, {}),
    "inspect": ({"getargspec": _getargspec}, {}),
    "networkx": ({"DiGraph": _digraph, "topological_sort": _topological_sort}, {}),
    "scipy": ({}, {}),
    "scipy.interpolate": ({"interp2d": _interp2d}, {}),
    "numpy": ({**_PYTHON_TYPES, "asscalar": _asscalar, "sum": _sum}, _RENAMED_IN_NUMPY),
}
_made_views: dict[str, _View] = {}


def old_view(module: ModuleType) -> ModuleType:
    """Return the view of a module for old modules, always the same one; others unchanged."""
    names = _VIEWS.get(module.__name__)
    if names is None:
        return module
    if module.__name__ not in _made_views:
        _made_views[module.__name__] = _View(module, *names)
    return _made_views[module.__name__]
