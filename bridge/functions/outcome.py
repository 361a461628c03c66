# SPDX-License-Identifier: Apache-2.0
"""The outcome of a run of a function, and the record of it for the backward pass."""

from __future__ import annotations

from typing import NamedTuple

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol

    from bridge.functions.call import Results

    class Node(Protocol):
        """The derivatives of one run with respect to its floating inputs.

        Cotangents and gradients are tensors of the library inside. A cotangent for each result;
        None: zero. A gradient for each wanted input; None: the library has none.
        """

        def pull(self, cotangents: list[Any], wanted: list[int]) -> list[Any]:
            """Return the gradients of the inputs with the numbers `wanted`."""

        def pull_recorded(self, cotangents: list[Any]) -> tuple[list[Any], Node]:
            """Return all gradients, and their own node.

            Its inputs are the inputs of this node, and then the cotangents that are not None.
            """


class Outcome(NamedTuple):
    """A run of a function.

    results: its results, without the tensors. tensors: these, of the library inside. node:
    None if nothing was recorded. gradients: for each tensor whether it has one.
    """

    results: Results
    tensors: list[Any]
    node: Node | None = None
    gradients: list[bool] | None = None


class Spec(NamedTuple):
    """The shape and the element type of a tensor, the type by NumPy's name."""

    shape: tuple[int, ...]
    dtype: str
