# SPDX-License-Identifier: Apache-2.0
"""NumPy inside: values without gradients."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy

from bridge.annotation import Any
from bridge.functions.call import Call, Results
from bridge.functions.inside.zeros import outline_on_zeros
from bridge.functions.outcome import Outcome, Spec


class Inside:
    """A function of NumPy arrays."""

    own = False

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.direct = function

    @staticmethod
    def arrive(x: Any, library: str, keep: bool = False) -> Any:
        """Return a NumPy array of the memory of `x`; not writable for JAX and TensorFlow."""
        from bridge.front import to_numpy

        if library in ("torch", "paddle"):
            x = x.detach()
        return to_numpy(x, copy=True) if keep else to_numpy(x)

    @staticmethod
    def is_floating(tensor: Any) -> bool:
        """Return whether its elements are real floating-point numbers."""
        return tensor.dtype.kind == "f" or "float" in tensor.dtype.name

    @staticmethod
    def is_complex(tensor: Any) -> bool:
        """Return whether its elements are complex."""
        return bool(tensor.dtype.kind == "c")

    def run(self, call: Call, tensors: list[Any]) -> Outcome:
        """Run the function; see `bridge.functions.inside`."""
        args, kwargs = call.arguments(tensors)
        results, found = Results.of(self.function(*args, **kwargs))
        return Outcome(results, found)

    def outline(self, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
        """Return the results of the function for shapes; see `bridge.functions.inside`."""
        return outline_on_zeros(self, call, specs)

    def random_state(self) -> bytes:
        """Return b"": nothing is run again."""
        return b""

    @contextmanager
    def restored(self, state: bytes | None) -> Iterator[None]:
        """Run with the random numbers of NumPy's global generator as they are now."""
        now = numpy.random.get_state()
        try:
            yield
        finally:
            numpy.random.set_state(now)
