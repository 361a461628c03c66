# SPDX-License-Identifier: Apache-2.0
"""Tensors on their way into a function, and its results and gradients on their way out."""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.functions.call import Call

# Their tensors never change.
_IMMUTABLE = ("jax", "tensorflow")


def arrive(inside: Any, call: Call, recorded: str = "") -> list[Any]:
    """Return the tensors of the call as tensors of the library inside.

    `recorded`: the library that notices if a tensor of its own changes before the backward pass;
    other tensors that may change are copied. "": there is no backward pass.
    """
    return [
        inside.arrive(x, library, bool(recorded) and library not in (recorded, *_IMMUTABLE))
        for x, library in zip(call.tensors, call.libraries, strict=True)
    ]


def deliver(x: Any, library: str, own: bool) -> Any:
    """Return a tensor of `library` with the values of `x`, in memory of its own.

    `own`: nothing else has the memory of `x`, so it is shared where that is possible.
    """
    from bridge.front import convert, to_torch

    if own and library == "torch":
        return to_torch(x, writable=True)
    if own and library in _IMMUTABLE:
        return convert(x, library)
    return convert(x, library, copy=True)


def arrived(inside: Any, cotangents: Iterable[Any], library: str) -> list[Any]:
    """Return cotangents of `library` as tensors of the library inside; None for None."""
    return [None if x is None else inside.arrive(x, library) for x in cotangents]


def delivered(inside: Any, gradients: Iterable[Any], library: str) -> list[Any]:
    """Return tensors of the library inside as tensors of `library`; None for None."""
    return [None if x is None else deliver(x, library, inside.own) for x in gradients]


def run(inside: Any, call: Call, library: str) -> Any:
    """Return the result of the function, as tensors of `library`; nothing is recorded."""
    outcome = inside.run(call, arrive(inside, call))
    return outcome.results.rebuild([deliver(x, library, inside.own) for x in outcome.tensors])


def floats_of(inside: Any, tensors: list[Any], tracked: list[int]) -> list[int]:
    """Return which of the tracked tensors are floating.

    Raises BufferError: one is complex.
    """
    for number in tracked:
        if inside.is_complex(tensors[number]):
            raise complex_error()
    return [number for number in tracked if inside.is_floating(tensors[number])]


def complex_error() -> BufferError:
    """Return the error of a gradient that does not cross."""
    return BufferError(
        "A complex tensor has values but no gradient in a function of another library, and its "
        "gradient would be dropped. Use detach(), or pass the real and the imaginary part."
    )


def drop_error(library: str, why: str, detach: str) -> BufferError:
    """Return the error of a gradient that would be dropped."""
    return BufferError(
        f"A gradient of a {library} tensor is asked for, and it would be dropped: {why}. If no "
        f"gradient is needed, use {detach}."
    )
