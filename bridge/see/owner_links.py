# SPDX-License-Identifier: Apache-2.0
"""The last links of a chain: the object that owns memory, and those that it keeps alive."""

from __future__ import annotations

import sys
from typing import Any

from bridge.see.type_names import type_name


def owner_links(owner: Any) -> list[dict[str, Any]]:
    """Return a link for an object that keeps memory alive, and for each object that it refers to.

    NumPy arrays are followed by their ``base``, memoryviews by their ``obj``.
    """
    links: list[dict[str, Any]] = []
    seen: set[int] = set()
    while owner is not None and id(owner) not in seen:
        seen.add(id(owner))
        link: dict[str, Any] = {"kind": type_name(owner)}
        sizes = _sizes(owner)
        if isinstance(sizes, tuple) and all(isinstance(n, int) for n in sizes):
            link["sizes"] = list(sizes)
        links.append(link)
        array_class: Any = getattr(sys.modules.get("numpy"), "ndarray", ())
        if isinstance(owner, array_class):
            if owner.base is None:
                link["text"] = "it owns its memory"
            owner = owner.base
        elif isinstance(owner, memoryview):
            owner = owner.obj
        else:
            owner = None
    return links


def _sizes(owner: Any) -> Any:
    tensor_class: Any = getattr(sys.modules.get("torch"), "Tensor", ())
    if isinstance(owner, tensor_class):
        from bridge.see.torch_memory import torch_sizes

        return torch_sizes(owner)
    return getattr(owner, "shape", None)
