# SPDX-License-Identifier: Apache-2.0
"""What is counted in the registry of the process."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bridge.caffe2 import workspace
from tests.helpers.operators import run_operator


def counters(*registry: str, **args: Any) -> dict[str, int]:
    """The counters that are not 0, by name."""
    run_operator("StatRegistryExport", list(registry), ["k", "v", "t"], **args)
    names, values, times = workspace.FetchBlobs(["k", "v", "t"])
    assert values.dtype == times.dtype == np.int64
    assert names.shape == values.shape == times.shape
    assert all(abs(when - time.time_ns()) < 60e9 for when in times)
    return {n.decode(): int(v) for n, v in zip(names, values, strict=True) if v}
