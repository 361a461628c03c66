# SPDX-License-Identifier: Apache-2.0
"""torch's own functions take the bridge's tensors.

- ``torch.utils.data.default_collate``, and so DataLoader, makes batches of both wrappers.
- ``torch.load`` reads them under its safe default, ``weights_only=True``.
- ``torch.nn.Parameter(x)`` is a parameter on their memory.
- Function transforms take at.Tensors: torch.vmap, torch.func.grad, torch.export. They see the
  arguments of a function through torch's pytrees; an at.Tensor is a tree of one torch.Tensor, on
  the same memory (read-only memory is copied, as by `to_torch`). The function that is transformed
  gets torch's tensors.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import torch

from bridge import pickling
from bridge.at.tensor import Tensor
from bridge.c10 import type_meta
from bridge.c10.array_ref import ArrayRef
from bridge.c10.device import DeviceType, as_device
from bridge.c10.options import TensorOptions
from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
from bridge.front import from_dlpack, to_torch
from bridge.wrapper import Wrapper


def register() -> None:
    """Tell torch of both tensor classes, in each place that it has for that."""
    from torch.utils import _pytree
    from torch.utils.data._utils.collate import default_collate_fn_map

    default_collate_fn_map[Tensor] = _collate
    default_collate_fn_map[Caffe2Tensor] = _collate
    # These make tensors of the bytes that a file has, and nothing else: no code of the file runs.
    # Subclasses and registered element classes are for their own modules to allow. The last are
    # classes that checkpoints have beside tensors.
    allowed: list[Any] = [Tensor, Caffe2Tensor, *pickling.REBUILDERS, *type_meta.REBUILDERS]
    allowed += [as_device, DeviceType, ArrayRef, TensorOptions]
    torch.serialization.add_safe_globals(allowed)
    _wrap_parameter()
    if Tensor not in _pytree.SUPPORTED_NODES:
        _pytree.register_pytree_node(
            Tensor,
            _flatten,
            _unflatten,
            serialized_type_name="bridge.at.Tensor",
            flatten_with_keys_fn=_flatten_with_keys,
        )


def _collate(batch: Any, *, collate_fn_map: Any = None) -> Any:
    """Return a torch tensor with one more dimension, as of a batch of NumPy arrays."""
    from torch.utils.data._utils.collate import collate

    # only read here, so that read-only memory can be shared
    tensors = [to_torch(one, writable=True) for one in batch]
    with torch.no_grad():
        return collate(tensors, collate_fn_map=collate_fn_map)


def _wrap_parameter() -> None:
    """Wrap ``torch.nn.Parameter.__new__``: torch has no place to register another way."""
    theirs = torch.nn.Parameter.__new__
    if getattr(theirs, "_takes_bridge", False):
        return

    @functools.wraps(theirs)
    def new(cls: Any, data: Any = None, requires_grad: bool = True) -> Any:
        return theirs(cls, to_torch(data) if isinstance(data, Wrapper) else data, requires_grad)

    new._takes_bridge = True  # type: ignore[attr-defined]
    torch.nn.Parameter.__new__ = staticmethod(new)  # type: ignore[method-assign]


class _Whole:
    """An at.Tensor that torch cannot hold, such as one of strings, as a tree without leaves."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def _flatten_with_keys(tensor: Tensor) -> tuple[list[tuple[Any, Any]], _Whole | None]:
    from torch.utils._pytree import GetAttrKey

    leaves, whole = _flatten(tensor)
    return [(GetAttrKey("to_torch()"), leaf) for leaf in leaves], whole


def _flatten(tensor: Tensor) -> tuple[list[Any], _Whole | None]:
    try:
        return [to_torch(tensor)], None
    except (BufferError, RuntimeError):
        return [], _Whole(tensor)


def _unflatten(leaves: Iterable[Any], whole: _Whole | None) -> Any:
    if whole is not None:
        return whole.tensor
    (leaf,) = leaves
    # In a transform all stay torch's: its own tensors have no memory that could be exchanged, and
    # operations on an at.Tensor beside them do.
    if type(leaf) is not torch.Tensor or torch._C._functorch.peek_interpreter_stack() is not None:
        return leaf
    try:
        return from_dlpack(leaf)
    except BufferError:
        return leaf  # one that requires grad, or of tracing
