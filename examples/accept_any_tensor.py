# SPDX-License-Identifier: Apache-2.0
"""A library function that takes a tensor of any framework and changes it in place.

One call, `bridge.from_dlpack`, replaces a chain of `isinstance` checks. With `copy=False` the
function changes the caller's own memory: if it cannot be shared, an error is raised.
"""

from __future__ import annotations

import array
from typing import TypeVar

import numpy as np
import torch

import bridge
from bridge import at, caffe2

AnyTensor = TypeVar("AnyTensor")


def clip_(batch: AnyTensor, low: float, high: float) -> AnyTensor:
    """Clip every element of `batch`, a tensor of any framework, to [low, high] in place.

    Return `batch`. Raises BufferError if its memory cannot be shared, ValueError if it is
    read-only, TypeError if it is not a tensor.
    """
    tensor = bridge.from_dlpack(batch, copy=False)
    if tensor.readonly:
        raise ValueError(f"cannot clip a read-only {type(batch).__name__} in place")
    tensor.clamp_(low, high)
    return batch


def main() -> None:
    """Clip tensors of five types, and try three that cannot be clipped in place."""
    values = [-2.0, 0.5, 3.0]
    blob = caffe2.Tensor([3], values, "float32")
    for batch in (
        torch.tensor(values),
        np.array(values),
        array.array("d", values),
        at.tensor(values),
        blob,
    ):
        clipped = clip_(batch, -1, 1)
        assert clipped is batch
        kind = f"{type(batch).__module__}.{type(batch).__name__}"
        print(f"{kind:<28}", bridge.from_dlpack(clipped).tolist())

    swapped = np.array(values).astype(np.dtype("float64").newbyteorder())
    for batch in (torch.tensor(values, requires_grad=True), swapped, bytes(3)):
        try:
            clip_(batch, -1, 1)
        except (BufferError, ValueError) as error:
            print(f"{type(error).__name__}: {error}")
        else:
            raise AssertionError(f"{batch!r} was clipped")


if __name__ == "__main__":
    main()
