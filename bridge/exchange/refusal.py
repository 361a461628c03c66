# SPDX-License-Identifier: Apache-2.0
"""Why an object is refused that has no tensor's memory, and what of it is accepted."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress

from bridge.annotation import Any

# Attributes by which libraries give access to the memory of an object, in order of preference.
_ATTRIBUTES = ("data", "values", "value", "planes", "array", "tensor", "buffer")
# Numbers of a library may have a buffer, but are no tensor.
_SIZES = ("shape", "strides", "size", "nbytes", "nrows", "ndim", "itemsize", "extdim", "rowsize")
# Methods that return such an object, usually a copy.
_METHODS = (
    *("numpy", "to_numpy", "asnumpy", "to_ndarray", "toarray", "to_dense", "todense", "detach"),
    *("arrow", "collect", "compute", "result", "read"),
)
# What gives the elements where neither an attribute nor a method of a usual name does.
_CALLS = {
    ("SimpleITK", "Image"): "Use SimpleITK.GetArrayViewFromImage(x), which shares it read-only.",
    ("cv2", "UMat"): "Use x.get(), a copy.",
}


def no_memory(x: Any, has_door: Callable[[Any], bool]) -> str:
    """Return the message of the TypeError for `x`; `has_door` tells what can be imported.

    >>> from bridge.exchange.refusal import no_memory
    >>> class Image:
    ...     planes = (b"abc",)
    >>> no_memory(Image(), lambda x: isinstance(x, bytes)).partition(". ")[2]
    'Convert its planes[0].'
    """
    if isinstance(x, type):
        return f"The class {x.__name__!r} itself (not an object of it) has no tensor's memory."
    subject = f"An object of type {type(x).__module__}.{type(x).__qualname__}"
    entry = _entry_of(x, has_door)
    if entry is not None:
        joined = " bridge.asarray copies them into one." if isinstance(x, (list, tuple)) else ""
        if not isinstance(x, (dict, list, tuple)):
            return f"{subject} is not a tensor, but holds tensors. Give one, as {entry}."
        return (
            f"{subject} is not a tensor, but holds tensors. Use bridge.convert(x, 'numpy'), which "
            f"converts each of them, or give one, as {entry}.{joined}"
        )
    if isinstance(x, (bool, int, float, complex, str)) or (
        isinstance(x, Sequence) and not has_door(x)
    ):
        return (
            f"{subject} has no tensor's memory, but values. Use bridge.asarray, which copies them."
        )
    found = next(_ways_in(x, has_door), None)
    call = _CALLS.get((type(x).__module__.partition(".")[0], type(x).__qualname__))
    if call is not None:
        advice = call
    elif found is not None:
        advice = f"Convert its {found}."
    else:
        advice = "bridge.asarray takes Python scalars, lists and strings."
    return (
        f"{subject} has no tensor's memory: none of DLPack, a buffer, an array interface, Arrow's "
        f"C data interface and __array__, and no importer is registered for it. {advice}"
    )


def _entry_of(x: Any, has_door: Callable[[Any], bool]) -> str | None:
    """Return how a tensor in a list, dict or TensorDict is written; None: `x` holds none."""
    if isinstance(x, Mapping) or type(x).__module__.partition(".")[0] == "tensordict":
        with suppress(Exception):  # of any library; what fails is no way in
            for key, value in x.items():
                if has_door(value) or _entry_of(value, has_door) is not None:
                    return f"x[{key!r}]"
    elif isinstance(x, (list, tuple)):
        for i, value in enumerate(x):
            if isinstance(value, (list, tuple)):
                return None
            if has_door(value) or (isinstance(value, Mapping) and _entry_of(value, has_door)):
                return f"x[{i}]"
    return None


def reason_of(error: BaseException) -> str:
    """Return the first line of the text of an error of another library; its type if it has none.

    >>> from bridge.exchange.refusal import reason_of
    >>> reason_of(RuntimeError("no such type\\nframe 1 of C++"))
    'no such type'
    """
    lines = str(error).strip().splitlines()
    return lines[0].rstrip(" :") if lines else type(error).__name__


def endless_importers(chain: list[Any], libraries: list[str]) -> str:
    """Return why objects, each returned by the importer of the one before, are refused."""
    names = list(dict.fromkeys(type(x).__name__ for x in chain[1:]))
    libraries = list(dict.fromkeys(libraries))
    if len(libraries) == 1:
        found = f"The importer of {libraries[0]}"
    else:
        found = f"The importers of {' and '.join(libraries)}"
    return (
        f"{found} returned another {', another '.join(names)}, {len(chain) - 1} times in a row. An "
        "importer returns something that has the memory, or its argument, to leave it to its own "
        "protocols."
    )


def _ways_in(x: Any, has_door: Callable[[Any], bool]) -> Iterator[str]:
    """Yield the attributes of `x` that can be imported, as they are written behind ``x.``."""
    yield from _attributes(x, has_door)
    for name in _METHODS:
        if callable(getattr(type(x), name, None)):
            yield f"{name}()"
    for name in _ATTRIBUTES:
        with suppress(Exception):
            value = getattr(x, name, None)
            if value is not None and not callable(value):
                yield from (f"{name}.{inner}" for inner in _attributes(value, has_door))


def _attributes(x: Any, has_door: Callable[[Any], bool]) -> Iterator[str]:
    own = [name for name in getattr(x, "__dict__", ()) if not name.startswith("_")]
    for name in dict.fromkeys([*_ATTRIBUTES, *own]):
        with suppress(Exception):  # a property of any library; what fails is no way in
            value = getattr(x, name, None)
            if value is None or callable(value) or name in _SIZES:
                continue
            if has_door(value):
                yield name
            elif isinstance(value, (list, tuple)) and value and has_door(value[0]):
                yield f"{name}[0]"
