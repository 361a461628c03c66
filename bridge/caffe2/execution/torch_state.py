# SPDX-License-Identifier: Apache-2.0
"""torch's settings that change what operations compute, and running without them.

Operators compute the same under ``torch.set_default_device``, ``torch.inference_mode``,
``torch.autocast`` and other contexts of the caller.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["neutral", "readers"]


def readers() -> tuple[Callable[[], Any], ...]:
    """Return torch's functions that tell which settings are in effect; torch is imported.

    They return the number of modes of functions, among them that of ``torch.set_default_device``,
    and whether there is autocasting and inference mode.
    """
    import torch

    return (
        torch._C._len_torch_function_stack,
        torch._C._is_any_autocast_enabled,
        torch.is_inference_mode_enabled,
    )


@contextlib.contextmanager
def neutral() -> Iterator[None]:
    """Return a context in which the settings are off."""
    import torch

    with contextlib.ExitStack() as stack:
        if torch._C._len_torch_function_stack():
            stack.enter_context(torch._C.DisableTorchFunction())
        if torch.is_inference_mode_enabled():
            stack.enter_context(torch.inference_mode(False))
            stack.enter_context(torch.no_grad())
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield
