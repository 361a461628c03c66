# SPDX-License-Identifier: Apache-2.0
"""Context managers whose innermost instance is found by its class.

Follows caffe2/python/context.py, PyTorch 1.8.1.

>>> from bridge.caffe2.modeling.context import Managed
>>> class Settings(Managed):
...     pass
>>> with Settings() as settings:
...     Settings.current() is settings
True
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import EnforceAssertionError

__all__ = ["DefaultManaged", "Managed"]


class _Active(threading.local):
    """The instances whose `with` blocks this thread is in, by class, outermost first."""

    def __init__(self) -> None:
        self.by_class: dict[type, list[Any]] = {}

    def of(self, cls: type) -> list[Any]:
        return self.by_class.setdefault(cls, [])


_active = _Active()


class Managed:
    """A class whose instances are context managers; `current` returns the innermost one.

    An instance is the current one of its own class and of each base class, in its thread. Called
    with a function, an instance returns a wrapper that runs the function inside the context.
    """

    _creates: ClassVar[bool] = False

    @classmethod
    def current(cls, value: Any = None, required: bool = True) -> Any:
        """Return `value` if given, otherwise the innermost active instance of this class.

        With required=False the result is None where none is active. Raises EnforceNotMet, also an
        AssertionError: none is active, or `value` is not an instance of this class.
        """
        caller = f"{cls.__name__}.current"
        if value is not None:
            if not isinstance(value, cls):
                raise EnforceAssertionError(
                    f"Expected a {cls.__name__}, not a {type(value).__name__}.", caller
                )
            return value
        active = _active.of(cls)
        if active:
            return active[-1]
        if not required:
            return None
        if not cls._creates:
            raise EnforceAssertionError(
                f"No {cls.__name__} is active here; enter one: `with {cls.__name__}(...):`.",
                caller,
            )
        active.append(cls())
        return active[-1]

    def __enter__(self) -> Any:
        for cls in self._classes():
            _active.of(cls).append(self)
        return self

    def __exit__(self, *error: object) -> None:
        for cls in self._classes():
            active = _active.of(cls)
            if not active or active[-1] is not self:
                raise EnforceAssertionError(
                    f"This {type(self).__name__} is not the innermost {cls.__name__}.",
                    f"{cls.__name__}.__exit__",
                )
            active.pop()

    def _classes(self) -> list[type]:
        """Return the classes that this object is the current instance of."""
        return [
            cls
            for cls in type(self).__mro__
            if issubclass(cls, Managed) and cls not in (Managed, DefaultManaged)
        ]

    def __call__(self, func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a function that calls `func` inside this context."""

        @functools.wraps(func)
        def run(*args: Any, **kwargs: Any) -> Any:
            with self:
                return func(*args, **kwargs)

        return run


class DefaultManaged(Managed):
    """A `Managed` class of which `current` creates an instance where none is active."""

    _creates = True
