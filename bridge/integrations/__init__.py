# SPDX-License-Identifier: Apache-2.0
"""Registrations with other packages, so that their own functions take the bridge's tensors.

Each module here tells one package, by the means that it offers for that, when it is imported; none
is imported for it.
"""

from __future__ import annotations

from bridge.exchange.torch_api import on_torch_loaded
from bridge.integrations.after_import import after_import

__all__ = ["prepare"]


def _torch() -> None:
    from bridge.integrations import (
        torch_collate,
        torch_load,
        torch_operators,
        torch_parameter,
        torch_pytree,
    )

    torch_collate.register()
    torch_load.register()
    torch_operators.register()
    torch_parameter.register()
    torch_pytree.register()


def _dynamo() -> None:
    from bridge.integrations import torch_compile

    torch_compile.register()


def _einops() -> None:
    from bridge.integrations import einops

    einops.register()


def prepare() -> None:
    """Register with each package when it is imported; at once if that has happened already."""
    after_import("torch", _torch)
    after_import("torch._dynamo", _dynamo)
    after_import("einops._backends", _einops)
    # If torch imports the bridge while it is itself imported, the end of that is not seen.
    on_torch_loaded(_torch)
