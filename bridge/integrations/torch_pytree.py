# SPDX-License-Identifier: Apache-2.0
"""torch's function transforms take at.Tensors: torch.vmap, torch.func.grad, torch.export.

They see the arguments of a function through torch's pytrees; an at.Tensor is a tree of one
torch.Tensor, on the same memory (read-only memory is copied, as by `to_torch`). The function that
is transformed gets torch's tensors.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from bridge.at.tensor import Tensor


class _Whole:
    """An at.Tensor that torch cannot hold, such as one of strings, as a tree without leaves."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def register() -> None:
    """Register at.Tensor as a node of torch's pytrees."""
    from torch.utils import _pytree

    if Tensor not in _pytree.SUPPORTED_NODES:
        _pytree.register_pytree_node(
            Tensor,
            _flatten,
            _unflatten,
            serialized_type_name="bridge.at.Tensor",
            flatten_with_keys_fn=_flatten_with_keys,
        )


def _flatten_with_keys(tensor: Tensor) -> tuple[list[tuple[Any, Any]], _Whole | None]:
    from torch.utils._pytree import GetAttrKey

    leaves, whole = _flatten(tensor)
    return [(GetAttrKey("to_torch()"), leaf) for leaf in leaves], whole


def _flatten(tensor: Tensor) -> tuple[list[Any], _Whole | None]:
    from bridge.front import to_torch

    try:
        return [to_torch(tensor)], None
    except (BufferError, RuntimeError):
        return [], _Whole(tensor)


def _unflatten(leaves: Iterable[Any], whole: _Whole | None) -> Any:
    if whole is not None:
        return whole.tensor
    (leaf,) = leaves
    import torch

    from bridge.front import from_dlpack

    # In a transform all stay torch's: its own tensors have no memory that could be exchanged, and
    # operations on an at.Tensor beside them do.
    if type(leaf) is not torch.Tensor or torch._C._functorch.peek_interpreter_stack() is not None:
        return leaf
    try:
        return from_dlpack(leaf)
    except BufferError:
        return leaf  # one that requires grad, or of tracing
