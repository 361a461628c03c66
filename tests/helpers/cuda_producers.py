# SPDX-License-Identifier: Apache-2.0
"""Objects that hand out a CUDA tensor on which work of a stream of theirs is under way."""

from __future__ import annotations

from typing import Any

import torch


class DescribedOnStream:
    """A producer with the CUDA Array Interface, whose `stream` is the one to wait for."""

    def __init__(self, t: torch.Tensor, stream: torch.cuda.Stream) -> None:
        self.t = t
        # 1: the default stream; the protocol has no 0
        stream_field = {"version": 3, "stream": stream.cuda_stream or 1}
        self.__cuda_array_interface__ = {**t.__cuda_array_interface__, **stream_field}


class AskedOnStream:
    """A producer that does as the array API says: the consumer's stream waits for its own."""

    def __init__(self, t: torch.Tensor, stream: torch.cuda.Stream) -> None:
        self.t, self.stream = t, stream

    def __dlpack__(self, *, stream: Any = None, **asked: Any) -> Any:
        with torch.cuda.stream(self.stream):
            return self.t.__dlpack__(stream=stream, **asked)

    def __dlpack_device__(self) -> Any:
        return self.t.__dlpack_device__()


class NoStream:
    """A producer of before streams: its work is on the default stream, and it takes no argument."""

    def __init__(self, t: torch.Tensor) -> None:
        self.t = t

    def __dlpack__(self) -> Any:
        with torch.cuda.device(self.t.device):
            return self.t.__dlpack__(stream=-1)

    def __dlpack_device__(self) -> Any:
        return self.t.__dlpack_device__()
