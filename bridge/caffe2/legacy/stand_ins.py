# SPDX-License-Identifier: Apache-2.0
"""Stand-ins for ``future``, ``past`` and ``six``, which old modules use to run on Python 2 too.

Only names that Caffe2's modules have used, and only where the libraries are not installed.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from types import ModuleType

from bridge.annotation import Any
from bridge.caffe2.legacy import onnx_models
from bridge.caffe2.legacy.views import old_view


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
