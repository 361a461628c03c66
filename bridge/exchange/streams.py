# SPDX-License-Identifier: Apache-2.0
"""CUDA streams, which are torch's: the bridge works on torch's current stream."""

from __future__ import annotations

from typing import Any

__all__ = ["current", "current_handle", "meet"]


def current_handle(index: int) -> int:
    """The handle of torch's current stream on a device; 0 is the legacy default stream."""
    import torch

    return int(torch.cuda.current_stream(index if index >= 0 else None).cuda_stream)


def current(index: int) -> int:
    """The same as the CUDA Array Interface and `__dlpack__` spell it: 1 for the default."""
    return current_handle(index) or 1


def meet(index: int, stream: Any) -> None:
    """Let the consumer's `stream` wait for the work on torch's current stream.

    `stream`: None and 1 the legacy default stream, 2 the per-thread one, -1 no
    synchronisation, otherwise a handle (Python array API standard, ``__dlpack__``).
    Raises BufferError: 0, which is ambiguous, or no int.
    """
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError(f"A stream is an int or None, not {stream!r}.")
    if stream == -1:
        return
    if stream == 0 or (stream is not None and stream < 0):
        raise BufferError(
            f"stream={stream} is ambiguous or unknown; 1 is the legacy default stream, 2 the "
            "per-thread one, -1 asks for no synchronisation."
        )
    import torch

    device = torch.device("cuda", index if index >= 0 else torch.cuda.current_device())
    ours = torch.cuda.current_stream(device)
    if stream is None or stream == 1:
        theirs: Any = torch.cuda.default_stream(device)
    else:
        theirs = torch.cuda.ExternalStream(stream, device=device)  # type: ignore[no-untyped-call]
    if theirs.cuda_stream != ours.cuda_stream:
        theirs.wait_stream(ours)
