# SPDX-License-Identifier: Apache-2.0
"""Whether processes can share tensors here, for `bridge doctor`."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def shared_memory() -> dict[str, Any]:
    """Return the outcome of sharing a tensor and attaching it by its name, by JSON's types.

    ``{"result": "ok" | "error", "reason": None | text}``. Nothing is left behind.
    """
    import os

    try:
        import bridge

        name = f"bridge-doctor-{os.getpid()}"
        with bridge.share(bytearray(b"doctor"), name=name) as shared:
            for source in (name, shared.path):
                if bytes(bridge.attach(source)) != b"doctor":
                    return {"result": "error", "reason": "other bytes came back"}
    except (OSError, MemoryError, BufferError, ImportError) as error:
        return {"result": "error", "reason": f"{type(error).__name__}: {error}"}
    return {"result": "ok", "reason": None}
