# SPDX-License-Identifier: Apache-2.0
"""CUDA streams: the bridge works on torch's current stream and orders it with those of others.

Ordering is done on the device: an event is recorded on one stream, and the other waits for it.
Only `synchronise_host` blocks the host. If the two streams are the same one, torch is not imported
and CUDA not initialised.

A stream is an int, as in the Python array API standard (``__dlpack__``) and in the CUDA Array
Interface: 1 is CUDA's legacy default stream, 2 the per-thread one; with ROCm 0 is the default
stream. A handle is what C libraries take: there the legacy default stream is 0.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from bridge.annotation import Any

_CUDA, _ROCM = 2, 10
_LEGACY = 0
# No handle is an address in the first page of memory, nor odd.
_FIRST_ADDRESS = 4096
_UNKNOWN = object()  # a capture


def current_handle(index: int) -> int:
    """Return the handle of torch's current stream on device `index`; negative: current device.

    0, the legacy default stream, as long as torch has not initialised CUDA.
    Raises BufferError: the device does not exist, or this is a forked child, where CUDA does not
    work.
    """
    torch = _torch_in_use()
    if torch is None:
        return _LEGACY
    return int(_current(torch, index).cuda_stream)


def _current(torch: Any, index: int) -> Any:
    try:
        return torch.cuda.current_stream(index if index >= 0 else None)
    except RuntimeError as error:
        raise BufferError(f"torch has no stream on CUDA device {index}: {error}") from error


def _torch_in_use() -> Any:
    torch: Any = sys.modules.get("torch")
    # without .cuda: torch is in the middle of being imported
    if torch is None or not hasattr(torch, "cuda") or not torch.cuda.is_initialized():
        return None
    return torch


def current_stream(index: int, device_type: int = _CUDA) -> int:
    """Return torch's current stream as a consumer passes it to a producer."""
    return current_handle(index) or (0 if device_type == _ROCM else 1)


def on_current_streams(work: Callable[[], None]) -> Callable[[], None]:
    """Return `work` for another thread: it runs on this thread's current device and streams there.

    A thread begins on device 0 and the default streams, and so would not wait for what is queued on
    the streams of the thread that started it, nor be waited for there.
    """
    torch = _torch_in_use()
    if torch is None:
        return work
    device = torch.cuda.current_device()
    streams = [torch.cuda.current_stream(index) for index in range(torch.cuda.device_count())]
    if not device and all(stream.cuda_stream == _LEGACY for stream in streams):
        return work

    def on_streams() -> None:
        from contextlib import ExitStack

        with ExitStack() as stack:
            for stream in streams:
                stack.enter_context(torch.cuda.stream(stream))
            stack.enter_context(torch.cuda.device(device))
            work()

    return on_streams


def check_stream(stream: Any, device_type: int = _CUDA) -> int | None:
    """Return the handle of a consumer's `stream`; None for -1, which asks for no synchronisation.

    Raises TypeError: not an int. BufferError: 0, which is ambiguous, or not a stream.
    """
    if stream is not None and (isinstance(stream, bool) or not isinstance(stream, int)):
        raise TypeError(f"A stream is an int or None, not {stream!r}.")
    return None if stream == -1 else _handle(stream, device_type)


def make_consumer_wait(index: int, stream: Any, device_type: int = _CUDA) -> None:
    """Make the consumer's `stream` wait for the work on torch's current stream.

    `stream`: None and 1 are the legacy default stream, 2 the per-thread one, -1 asks for no
    synchronisation, otherwise a handle (Python array API standard, ``__dlpack__``).

    The memory is not registered with `stream` (torch's ``record_stream``): the consumer may
    destroy its stream before the memory is freed, and torch would use it then.

    Raises TypeError: not an int. BufferError: 0, which is ambiguous, not a stream, or one of the
    two streams is being captured into a CUDA graph.
    """
    theirs = check_stream(stream, device_type)
    if theirs is None:
        return
    ours = current_handle(index)
    if theirs != ours:
        _order(index, ours, theirs)


def synchronise_host(index: int) -> None:
    """Block until the work on torch's current stream is done, for consumers without streams.

    Raises BufferError: the stream is being captured into a CUDA graph.
    """
    torch = _torch_in_use()
    if torch is None:
        return
    ours = _current(torch, index)
    if _is_captured(torch, ours):
        raise BufferError(
            "The stream is being captured into a CUDA graph, so the host cannot wait for it, which "
            "a framework that takes no stream needs. Convert before or after."
        )
    ours.synchronize()


def wait_for_producer(index: int, stream: Any, device_type: int = _CUDA) -> None:
    """Make torch's current stream wait for the work on the producer's `stream`.

    `stream`: as in `make_consumer_wait`, but None asks for no synchronisation (CUDA Array
    Interface, version 3). Raises BufferError: as there, and if it is not an int.
    """
    if stream is None or stream == -1:
        return
    if isinstance(stream, bool) or not isinstance(stream, int):
        raise BufferError(f"A stream is an int or None, not {stream!r}.")
    wait_for_handle(index, _handle(stream, device_type))


def wait_for_handle(index: int, theirs: int) -> None:
    """Make torch's current stream wait for a handle, as DLPack's exchange table returns it."""
    ours = current_handle(index)
    if theirs == 1:
        theirs = _LEGACY  # cudaStreamLegacy
    if theirs != ours:
        _order(index, theirs, ours)


def wait_for_event(index: int, event: int) -> None:
    """Make torch's current stream wait for a CUDA event, as Arrow's device arrays carry one.

    Raises BufferError: CUDA does not know the event, or the stream is being captured into a CUDA
    graph.
    """
    if not event:
        return
    torch = _torch_in_use()
    if torch is None:
        status = _queue_event(_LEGACY, event)
    else:
        ours = _current(torch, index)
        if _is_captured(torch, ours):
            raise BufferError(
                "The stream is being captured into a CUDA graph, which an event of outside would "
                "end. Convert before or after."
            )
        # the legacy default stream is that of the current device
        with torch.cuda.device(index):
            status = _queue_event(ours.cuda_stream, event)
    if status:
        raise BufferError(f"CUDA cannot wait for the event {event:#x}: error {status}.")


def _queue_event(stream: int, event: int) -> int:
    """Make a stream wait for an event; CUDA's error number. Raises BufferError: no CUDA here."""
    from ctypes import CDLL, c_uint, c_void_p

    # torch waits for its own events only; those of the driver are those of the runtime
    try:
        wait = CDLL("libcuda.so.1").cuStreamWaitEvent
    except (OSError, AttributeError) as error:
        try:
            wait = CDLL(_runtime_library()).cudaStreamWaitEvent
        except (OSError, AttributeError):
            raise BufferError(
                f"The memory is not ready, and CUDA cannot be asked: {error}"
            ) from error
    return int(wait(c_void_p(stream), c_void_p(event), c_uint(0)))


def _runtime_library() -> str:
    """Return the name of the runtime that torch has loaded; of none for a torch without CUDA."""
    torch: Any = sys.modules.get("torch")
    version = getattr(getattr(torch, "version", None), "cuda", None)
    return f"libcudart.so.{str(version).partition('.')[0]}"


def _handle(stream: int | None, device_type: int) -> int:
    default = 0 if device_type == _ROCM else 1
    if stream is None or stream == default:
        return _LEGACY
    if stream == 2 and device_type != _ROCM:
        return stream
    if stream < _FIRST_ADDRESS or stream % 2 or stream >= 2**64:
        raise BufferError(
            f"stream={stream} is not a stream, or ambiguous; {default} is the default stream, 2 "
            "CUDA's per-thread one, -1 asks for no synchronisation, and any other number is the "
            "address of a stream."
        )
    return stream


def _order(index: int, before: int, after: int) -> None:
    """Make the stream `after` wait for the work queued on the stream `before`."""
    try:
        import torch

        device = torch.device("cuda", index if index >= 0 else torch.cuda.current_device())
        first, then = _stream(torch, device, before), _stream(torch, device, after)
        captured = [_capture_of(torch, stream) for stream in (first, then)]
        # An event of a captured stream extends the capture to the stream that waits for it, but
        # not to the legacy default stream. A captured stream cannot wait for an event of outside,
        # nor for one of another capture: both captures would end.
        possible = captured[0] is captured[1] or (captured[1] is None and after != _LEGACY)
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
            "one of them is being captured into a CUDA graph, or each into its own. Have both "
            "libraries work on the stream that is captured, or ask with stream=-1."
        )


def _stream(torch: Any, device: Any, handle: int) -> Any:
    if handle == _LEGACY:
        return torch.cuda.default_stream(device)
    ours = torch.cuda.current_stream(device)
    return ours if ours.cuda_stream == handle else torch.cuda.ExternalStream(handle, device=device)


def _is_captured(torch: Any, stream: Any) -> bool:
    """Return whether a stream is being captured; asking does not disturb the capture."""
    if stream.cuda_stream == _LEGACY:
        return False  # it cannot be, and asking fails while another stream is
    with torch.cuda.stream(stream):
        return bool(torch.cuda.is_current_stream_capturing())


def _capture_of(torch: Any, stream: Any) -> Any:
    """Return the graph that a stream is being captured into; None if it is not being captured.

    A capture that torch did not begin, and all of torch before 2.12, count as one and the same.
    """
    if not _is_captured(torch, stream):
        return None
    current = getattr(torch._C._CUDAGraph, "get_currently_capturing_graph", None)
    if current is None:
        return _UNKNOWN
    with torch.cuda.stream(stream):
        try:
            return current()
        except RuntimeError:  # not begun by torch
            return _UNKNOWN
