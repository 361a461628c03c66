# SPDX-License-Identifier: Apache-2.0
"""Defaults and modes of torch that a program may have set, and that change nothing in `bridge`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import torch

__all__ = ["SETTINGS"]


@contextmanager
def _default_dtype(dtype: torch.dtype) -> Iterator[None]:
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextmanager
def _deterministic() -> Iterator[None]:
    torch.use_deterministic_algorithms(True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(False)


SETTINGS: dict[str, Callable[[], AbstractContextManager[Any]]] = {
    "meta": lambda: torch.device("meta"),
    "cpu": lambda: torch.device("cpu"),
    "float64": lambda: _default_dtype(torch.float64),
    "bfloat16": lambda: _default_dtype(torch.bfloat16),
    "inference mode": torch.inference_mode,
    "no grad": torch.no_grad,
    "deterministic": _deterministic,
    "autocast": lambda: torch.autocast("cpu", torch.bfloat16),
}
"""By name; each makes a context manager in which the setting holds."""
