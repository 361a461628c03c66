# SPDX-License-Identifier: Apache-2.0
"""NumPy, SciPy and others as old modules know them, with the names that were dropped since."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Generator
from functools import cache
from types import ModuleType

from bridge.annotation import Any
from bridge.caffe2.legacy import onnx_models


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
_made: dict[str, _View] = {}


def old_view(module: ModuleType) -> ModuleType:
    """Return the view of a module for old modules, always the same one; others unchanged."""
    names = _VIEWS.get(module.__name__)
    if names is None:
        return module
    if module.__name__ not in _made:
        _made[module.__name__] = _View(module, *names)
    return _made[module.__name__]
