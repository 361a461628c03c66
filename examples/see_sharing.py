# SPDX-License-Identifier: Apache-2.0
"""Inspect sharing: who owns a tensor's memory, which conversions copy, and how to forbid copies."""

from __future__ import annotations

import importlib.util

import numpy as np
import torch

import bridge
from bridge.caffe2 import workspace


def main() -> None:
    """Share memory between frameworks, explain it, and observe the conversions."""
    weights = torch.arange(16.0)
    with bridge.audit() as log:
        x = bridge.from_dlpack(weights)
        array = x.numpy()
        workspace.FeedBlob("weights", weights)
        workspace.FetchBlob("weights")  # a copy, as in Caffe2
        bridge.from_dlpack(np.arange(3.0).astype(">f4"))  # foreign byte order
        if importlib.util.find_spec("jax") is not None:
            bridge.to_jax(weights)
    print(log)

    print("\nWho uses that memory?")
    print(bridge.explain(x))
    assert bridge.shares_memory(array, weights)
    assert not bridge.shares_memory(array[::2], weights[1::2])

    constants = np.arange(3.0)
    constants.flags.writeable = False
    with bridge.no_copy():
        bridge.from_dlpack(constants)
        try:
            bridge.to_torch(constants)
        except BufferError as error:
            print("\nInside no_copy:", error)


if __name__ == "__main__":
    main()
