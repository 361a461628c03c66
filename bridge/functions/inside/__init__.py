# SPDX-License-Identifier: Apache-2.0
"""The libraries that a wrapped function may be written for, a file each.

Such a file has a class `Inside`. It takes the function, and has:

- ``direct(*args, **kwargs)``: the function, called for a caller of the same library.
- ``arrive(x, library, keep)``: the library's own tensor of `x`, a tensor of `library`, shared if it
  can be. `keep`: copied if the caller may change it before the backward pass.
- ``own``: whether nothing else has the memory of its results and gradients.
- ``is_floating(tensor)``, ``is_complex(tensor)``.
- ``run(call, tensors)``: an `Outcome`; nothing is recorded.
- ``record(call, tensors, floats)``: an `Outcome` with a `Node`, which knows the derivatives with
  respect to the tensors with the numbers `floats`.
- ``outline(call, specs)``: `Results` and a `Spec` for each tensor of them, found on shapes only.
  `specs` has a `Spec` for each tensor that has no values yet, and the library's own tensor for
  any other.
- ``random_state()``, ``restored(state)``: the state of the random numbers as bytes of a fixed
  length (b"": none is needed; None: not known), and a context with that state.

`load` adds ``records`` and ``outlines``, which `bridge.functions.traced` uses.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from bridge.annotation import Any
from bridge.functions.pass_records import Records

__all__ = ["LIBRARIES", "load"]

LIBRARIES = ("torch", "jax", "tensorflow", "paddle", "numpy", "cupy")


def load(library: str, function: Callable[..., Any]) -> Any:
    """Return the `Inside` of `function`; imports the library.

    Raises ImportError: it cannot be imported.
    """
    try:
        module = import_module(f"{__name__}.{library}")
    except ImportError as error:
        raise ImportError(
            f"The function is written for {library}, which cannot be imported: {error}"
        ) from error
    loaded = module.Inside(function)
    loaded.records = Records()
    loaded.outlines = {}
    return loaded
