# SPDX-License-Identifier: Apache-2.0
"""CUDA streams: the bridge works on torch's current one, and others wait for it or it for them.

But for `finish` nothing here waits on the host: an event is recorded on the one stream, and the
other waits for it. Where neither is needed, torch is not imported and CUDA not initialised.

Streams are ints, as the Python array API standard (``__dlpack__``) and the CUDA Array Interface
have them: 1 is the legacy default stream of CUDA, 2 the per-thread one; with ROCm 0 is the default
one. Handles are what the C libraries take: there the legacy default stream is 0.
"""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["current", "current_handle", "finish", "follow", "follow_handle", "meet"]

_CUDA, _ROCM = 2, 10
_LEGACY = 0
# What is no pointer, and so no handle: the first page of memory, and odd addresses.
_FIRST_ADDRESS = 4096


def current_handle(index: int) -> int:
    """The handle of torch's current stream on device `index`, the current device if negative.

    As long as torch has not begun to use CUDA its current stream is the legacy default one, 0.
    Raises RuntimeError, as torch does: there is no such device.
    """
    torch = _torch_in_use()
    if torch is None:
        return _LEGACY
    return int(torch.cuda.current_stream(index if index >= 0 else None).cuda_stream)


def _torch_in_use() -> Any:
    torch: Any = sys.modules.get("torch")
    # a torch that is being imported just now has not begun, either
    if torch is None or not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return None
    return torch


def current(index: int, device_type: int = _CUDA) -> int:
    """The same as a consumer says it to a producer."""
    return current_handle(index) or (0 if device_type == _ROCM else 1)


def meet(index: int, stream: Any, device_type: int = _CUDA) -> None:
    """Let the consumer's `stream` wait for the work on torch's current stream.

    `stream`: None and 1 the legacy default stream, 2 the per-thread one, -1 no
    synchronisation, otherwise a handle (Python array API standard, ``__dlpack__``).

    The memory is not kept for `stream` (torch's ``record_stream``): whose stream that is may end
    it before the memory goes, and torch would use it then.

    Raises TypeError: no int. BufferError: 0, which is ambiguous, what is no stream at all, or
    what cannot wait, because one of the two is being captured into a CUDA graph.
    """
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError(f"A stream is an int or None, not {stream!r}.")
    if stream == -1:
        return
    theirs, ours = _handle(stream, device_type), current_handle(index)
    if theirs != ours:
        _order(index, ours, theirs)


def finish(index: int) -> None:
    """Wait on the host for the work on torch's current stream: for who knows no streams.

    Raises BufferError: the stream is being captured into a CUDA graph.
    """
    torch = _torch_in_use()
    if torch is None:
        return
    ours = torch.cuda.current_stream(index if index >= 0 else None)
    if _is_captured(torch, ours):
        raise BufferError(
            "What is being captured into a CUDA graph cannot be waited for, as a framework that "
            "takes no stream needs. Convert before or after."
        )
    ours.synchronize()


def follow(index: int, stream: Any, device_type: int = _CUDA) -> None:
    """Let torch's current stream wait for the work on the producer's `stream`.

    `stream` as in `meet`, but None asks for no synchronisation (CUDA Array Interface, version 3).
    Raises BufferError as `meet`, and for what is no int.
    """
    if stream is None or stream == -1:
        return
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise BufferError(f"A stream is an int or None, not {stream!r}.")
    follow_handle(index, _handle(stream, device_type))


def follow_handle(index: int, theirs: int) -> None:
    """The same for a handle, as DLPack's exchange table gives it. Raises BufferError as `meet`."""
    ours = current_handle(index)
    if theirs == 1:
        theirs = _LEGACY  # CUDA's other name for it
    if theirs != ours:
        _order(index, theirs, ours)


def _handle(stream: int | None, device_type: int) -> int:
    default = 0 if device_type == _ROCM else 1
    if stream is None or stream == default:
        return _LEGACY
    if stream == 2 and device_type != _ROCM:
        return stream
    if stream < _FIRST_ADDRESS or stream % 2 or stream >= 2**64:
        raise BufferError(
            f"stream={stream} is no stream, or not said clearly which; {default} is the default "
            "stream, 2 the per-thread one of CUDA, -1 asks for no synchronisation, and all else "
            "is the address of a stream."
        )
    return stream


def _order(index: int, before: int, after: int) -> None:
    """Let the stream `after` wait for what the stream `before` has to do by now."""
    try:
        import torch

        device = torch.device("cuda", index if index >= 0 else torch.cuda.current_device())
        first, then = _stream(torch, device, before), _stream(torch, device, after)
        captured = [_is_captured(torch, stream) for stream in (first, then)]
        # A captured event leads other streams into the capture, as it should; but not the legacy
        # default stream, and no event of outside leads in.
        possible = captured[0] == captured[1] or (captured[0] and after != _LEGACY)
        if possible:
            then.wait_stream(first)
    except Exception as error:
        raise BufferError(
            f"Stream {after:#x} cannot wait for stream {before:#x} of CUDA device {index}: {error} "
            "Synchronise them yourself and ask with stream=-1."
        ) from error
    if not possible:
        raise BufferError(
            f"Stream {after:#x} cannot wait for stream {before:#x} of CUDA device {index} while "
            "one of them is being captured into a CUDA graph. Have both libraries work on the "
            "stream that is captured, or ask with stream=-1."
        )


def _stream(torch: Any, device: Any, handle: int) -> Any:
    if handle == _LEGACY:
        return torch.cuda.default_stream(device)
    ours = torch.cuda.current_stream(device)
    return ours if ours.cuda_stream == handle else torch.cuda.ExternalStream(handle, device=device)


def _is_captured(torch: Any, stream: Any) -> bool:
    """Whether a stream is being captured; asking does not disturb the capture."""
    if stream.cuda_stream == _LEGACY:
        return False  # it cannot be, and asking fails while another stream is
    with torch.cuda.stream(stream):
        return bool(torch.cuda.is_current_stream_capturing())
