# SPDX-License-Identifier: Apache-2.0
"""Imports a library, so that nothing is left to import, and computes nothing with it."""

from __future__ import annotations

import importlib
import os
import sys
import warnings
from collections.abc import Callable

import numpy as np

from bridge.annotation import Any
from bridge.conform.isolation import isolated
from bridge.conform.libraries import setup_of

PARTS = ("make", "from_dlpack", "to_numpy")
_WARM = 60.0  # seconds for the first use


def loaded(name: str) -> dict[str, Callable[..., Any]]:
    """Return the parts of a library by name. Raises the error of its import."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.simplefilter("ignore")
    known: dict[str, Any] = {}
    exec(compile(setup_of(name), f"<{name}>", "exec"), known)
    parts = {part: known[part] for part in PARTS if part in known}
    _import_what_is_used(parts)
    return parts


def _import_what_is_used(parts: dict[str, Any]) -> None:
    """Import the modules that a library imports when it is first used, without using it here.

    They would be imported in each case again, and a case has little time.
    """

    def used() -> list[str]:
        before = set(sys.modules)
        array = np.arange(6.0)
        uses: tuple[Callable[[], Any], ...] = (
            lambda: parts["to_numpy"](parts["make"](array)),
            lambda: parts["from_dlpack"](array),
            lambda: parts["make"](array).__dlpack__(max_version=(1, 3)),
            lambda: parts["to_numpy"](parts["from_dlpack"](array)),
        )
        for call in uses:
            try:
                call()
            except Exception:  # noqa: BLE001  a part may be missing, or refuse
                continue
        return [module for module in sys.modules if module not in before]

    how, modules = isolated(used, _WARM)
    for module in modules if how == "done" else ():
        try:
            importlib.import_module(module)
        except Exception:  # noqa: BLE001  it is made at run time, or no module
            continue
