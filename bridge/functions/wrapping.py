# SPDX-License-Identifier: Apache-2.0
"""`wrap`: a function of one library as a function of all of them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps

from bridge.annotation import Any
from bridge.exchange.registry import exporting_names
from bridge.functions import crossing, inside, outside
from bridge.functions.call import Call, Results
from bridge.functions.tensors import UNNAMED, library_of

_BUILT_IN = ("torch", "numpy", "at", "caffe2")
_WITHOUT_GRADIENTS = ("numpy", "cupy")


def wrap(
    function: Callable[..., Any], library: str, *, returns: str | None = None
) -> Callable[..., Any]:
    """Return a function that takes tensors of any library, and calls `function` with its own.

    `function`: written for `library`: "torch", "jax", "tensorflow", "paddle", "numpy" or "cupy".
    Arguments may be trees. Their tensors arrive as those of `library`, shared where that is
    possible; all else passes unchanged. Results come back as the library of the first tensor among
    the arguments, or as that named by `returns`, in memory of their own. Without a tensor among the
    arguments, and without `returns`, they come back unchanged.

    Gradients cross: torch's, JAX's, TensorFlow's and Paddle's, of all floating arguments and
    results, as far as `library` has them. See "Functions across frameworks" in the documentation.

    Raises TypeError: `function` is not callable. ValueError: an unknown name. The function that is
    returned raises BufferError where a gradient would be dropped, or a tensor cannot be exchanged.

    >>> import bridge, numpy, torch
    >>> mean = bridge.wrap(lambda x: x.mean(), "torch")
    >>> mean(numpy.array([1.0, 2.0, 6.0]))
    array(3.)
    """
    if not callable(function):
        raise TypeError(f"wrap takes a function, not {function!r}.")
    _check(library, "library", inside.LIBRARIES)
    if returns is not None:
        _check(returns, "returns", tuple(dict.fromkeys((*_BUILT_IN, *exporting_names()))))
    wrapped = _Wrapped(function, library, returns)

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is None:
            return wrapped.call(args, kwargs)
        return wrapped.uncompiled(dynamo)(args, kwargs)

    # for TensorFlow's AutoGraph, which otherwise converts all that `call` calls
    vars(call)["autograph_info__"] = {}
    return call


def _check(name: Any, what: str, names: tuple[str, ...]) -> None:
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"{what} is one of {', '.join(names)}, not {name!r}.")


class _Wrapped:
    """A function, the library that it is written for, and the library of its results."""

    def __init__(self, function: Callable[..., Any], library: str, returns: str | None) -> None:
        self.function = function
        self.library = library
        self.returns = returns
        self._inside: Any = None
        self._uncompiled: Any = None

    def uncompiled(self, dynamo: Any) -> Callable[..., Any]:
        """Return `call` for where ``torch.compile`` may be at work: its graph breaks there."""
        if self._uncompiled is None:
            self._uncompiled = dynamo.disable(self.call)
        return self._uncompiled  # type: ignore[no-any-return]

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        call = Call(args, kwargs)
        to = self.returns or (call.libraries[0] if call.libraries else "")
        if not to:
            return self.function(*args, **kwargs)
        if to == UNNAMED:
            raise BufferError(
                f"The first tensor, a {type(call.tensors[0]).__name__}, is of no library that "
                "results can come back as. Name one with returns=."
            )
        if self._inside is None:
            self._inside = inside.load(self.library, self.function)
        tracked = self._tracked(call, to)
        if to == self.library:
            return self._called_directly(call)
        module = outside.load(to)
        if module is not None and (tracked or module.ALWAYS):
            return module.call(self._inside, call, tracked)
        return crossing.run(self._inside, call, to)

    def _tracked(self, call: Call, to: str) -> list[int]:
        """Return which tensors are tracked. Raises BufferError: a gradient would be dropped."""
        tracked = []
        for number, (x, library) in enumerate(zip(call.tensors, call.libraries, strict=True)):
            module = outside.load(library)
            if module is None or not module.is_tracked(x):
                continue
            if library != to:
                raise crossing.drop_error(
                    library, f"results come back as tensors of {to}", module.DETACH
                )
            if self.library in _WITHOUT_GRADIENTS and module.is_differentiated(x):
                raise crossing.drop_error(
                    library, f"{self.library} has no gradients", module.DETACH
                )
            tracked.append(number)
        return tracked

    def _called_directly(self, call: Call) -> Any:
        """Call the function for a caller of its own library, whose tensors pass unchanged."""
        tensors = [
            x if library == self.library else self._inside.arrive(x, library)
            for x, library in zip(call.tensors, call.libraries, strict=True)
        ]
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self._inside.direct(*args, **kwargs))
        return results.rebuild(
            [
                x if library_of(x) == self.library else self._inside.arrive(x, "", True)
                for x in found
            ]
        )
