# SPDX-License-Identifier: Apache-2.0
"""The shapes of results, found by one run on zeros."""

from __future__ import annotations

import numpy

from bridge.annotation import Any
from bridge.c10.type_meta import TypeMeta
from bridge.functions.call import Call, Results
from bridge.functions.outcome import Spec


def spec_of(x: Any) -> Spec:
    """Return the Spec of a tensor of any library."""
    from bridge.exchange.import_tensor import import_tensor

    impl = import_tensor(x)
    return Spec(tuple(impl.sizes()), impl.dtype().name)


def outline_on_zeros(inside: Any, call: Call, specs: list[Any]) -> tuple[Results, list[Spec]]:
    """Return the results of the function for zeros, and the Spec of each tensor of it.

    Raises ValueError: a tensor is empty, and no argument is.
    """
    tensors = [
        inside.arrive(numpy.zeros(spec.shape, TypeMeta.Make(spec.dtype).numpy), "numpy")
        if isinstance(spec, Spec)
        else spec
        for spec in specs
    ]
    with inside.restored(inside.random_state()):
        outcome = inside.run(call, tensors)
    found = [spec_of(x) for x in outcome.tensors]
    if any(0 in x.shape for x in found) and not any(0 in spec_of(x).shape for x in tensors):
        # (XLA does not even call a function that returns no elements)
        raise ValueError(
            f"For zeros the function returns tensors of the shapes {[x.shape for x in found]}, so "
            "that their shapes seem to depend on values. Under jit and vmap, and in tf.function, "
            "shapes may not."
        )
    return outcome.results, found
