# SPDX-License-Identifier: Apache-2.0
"""Registrations with other packages, so that their own functions take the bridge's tensors.

Each module here tells one package, by the means that it offers for that, when it is imported; none
is imported for it.
"""

from __future__ import annotations

from functools import partial
from importlib import import_module

from bridge.exchange.torch_api import on_torch_loaded
from bridge.integrations.after_import import after_import

__all__ = ["prepare"]

# The modules here by what they register with.
_MODULES = {
    "torch": ("torch_operators", "torch_registrations"),
    "torch._dynamo": ("torch_compile",),
    "einops._backends": ("einops",),
}


def _register(package: str) -> None:
    for name in _MODULES[package]:
        import_module(f"bridge.integrations.{name}").register()


def prepare() -> None:
    """Register with each package when it is imported; at once if that has happened already."""
    for package in _MODULES:
        after_import(package, partial(_register, package))
    # If torch imports the bridge while it is itself imported, the end of that is not seen.
    on_torch_loaded(partial(_register, "torch"))
