# SPDX-License-Identifier: Apache-2.0
"""A stand-in for the part of torch.cuda that the bridge uses, on a machine without a GPU.

It has two devices and writes down which stream was made to wait for which. What it shows is which
streams the bridge asks for and orders, and that nothing is asked of a stream that is captured
which would end the capture. That CUDA then does so, the tests marked `cuda` see to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import pytest
import torch

SIDE, THEIRS = 0x5000, 0x7000  # handles of streams, of torch's and of somebody else's


class Stream:
    """A stream, known by its device and its handle."""

    def __init__(self, cuda: FakeCuda, device: int, handle: int) -> None:
        self._cuda = cuda
        self.device = device
        self.cuda_stream = handle

    def synchronize(self) -> None:
        assert not self._cuda.captured(self), "the host waited for a capture"
        self._cuda.finished.append((self.device, self.cuda_stream))

    def wait_stream(self, other: Stream) -> None:
        """Refuses what CUDA refuses, and what then ends the capture."""
        assert other.device == self.device
        into, out_of = self._cuda.captured(self), self._cuda.captured(other)
        if into and not out_of:
            raise AssertionError("an event of outside was waited for inside a capture")
        if out_of and self.cuda_stream == 0:
            raise AssertionError("the legacy default stream was made to wait for a capture")
        self._cuda.waits.append((self.device, self.cuda_stream, other.cuda_stream))


class FakeCuda:
    """What torch's streams are, and what was done to them.

    `waits`: (device, stream that waits, stream waited for). `finished`: (device, stream) that the
    host waited for. `current`: torch's streams, one a device. `capturing`: handles of streams that
    are being captured. `questions`: what was asked that begins to use CUDA.
    """

    def __init__(self) -> None:
        self.waits: list[tuple[int, int, int]] = []
        self.finished: list[tuple[int, int]] = []
        self.current = [0, 0]
        self.capturing: set[int] = set()
        self.initialized = True
        self.questions: list[str] = []
        self._inside: list[Stream] = []

    def captured(self, stream: Stream) -> bool:
        return stream.cuda_stream in self.capturing

    def install(self, patch: pytest.MonkeyPatch) -> None:
        """Put it in the place of torch.cuda's functions."""
        for name in (
            "current_device",
            "current_stream",
            "default_stream",
            "device",
            "device_count",
            "init",
            "is_available",
            "is_current_stream_capturing",
            "is_initialized",
            "stream",
        ):
            patch.setattr(torch.cuda, name, getattr(self, name))
        patch.setattr(torch.cuda, "ExternalStream", self.external_stream)

    def init(self) -> None:
        self.questions.append("init")
        self.initialized = True

    def is_initialized(self) -> bool:
        return self.initialized

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return len(self.current)

    def current_device(self) -> int:
        self.questions.append("current_device")
        return 0

    def _index(self, device: Any) -> int:
        self.questions.append("stream")
        index = device.index if isinstance(device, torch.device) else device
        index = 0 if index is None else index
        if not 0 <= index < len(self.current):
            raise RuntimeError(f"Device index value {index} is out of index range")
        return int(index)

    def current_stream(self, device: Any = None) -> Stream:
        index = self._index(device)
        return Stream(self, index, self.current[index])

    def default_stream(self, device: Any = None) -> Stream:
        return Stream(self, self._index(device), 0)

    def external_stream(self, handle: int, device: Any = None) -> Stream:
        return Stream(self, self._index(device), handle)

    @contextlib.contextmanager
    def device(self, index: int) -> Iterator[None]:
        self._index(index)
        yield

    @contextlib.contextmanager
    def stream(self, stream: Stream) -> Iterator[None]:
        self._inside.append(stream)
        try:
            yield
        finally:
            self._inside.pop()

    def is_current_stream_capturing(self) -> bool:
        stream = self._inside[-1]
        if stream.cuda_stream == 0 and self.capturing:
            raise RuntimeError("operation would make the legacy stream depend on a capturing one")
        return self.captured(stream)
