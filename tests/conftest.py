# SPDX-License-Identifier: Apache-2.0
"""What every test shares: the `cuda` marker, the hypothesis profiles, and a fresh workspace."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, settings

from bridge.caffe2 import workspace
from tests.helpers.seeds import seed_generators

# Where JAX has a GPU it would take most of the memory, of which other libraries need some here.
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")

# OpenVINO reports its first import to its makers, from a process that a thread forks: no test may
# reach the network, and JAX, which has threads, warns of a fork. Without this module it does not.
sys.modules["openvino_telemetry"] = None  # type: ignore[assignment]

# A shell starts what it runs in the background with SIGINT ignored, and tests press Ctrl-C.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline: the first example pays for imports. No example database: a run leaves nothing behind
# and starts from the same place everywhere.
settings.register_profile(
    "default",
    deadline=None,
    database=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)
# Fresh random examples, more of them, each failure with the line that repeats it.
settings.register_profile(
    "thorough", deadline=None, database=None, max_examples=2000, print_blob=True
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def _same_random_numbers() -> None:
    seed_generators()


@pytest.fixture
def fresh_workspace() -> Iterator[None]:
    """Make the default workspace current, and all empty, before and after the test.

    Their root folders are a temporary folder during the test, then the default again.
    """
    with TemporaryDirectory() as folder:
        _empty_workspaces(folder)
        yield
        _empty_workspaces(".")


def _empty_workspaces(root_folder: str) -> None:
    for name in workspace.Workspaces():  # Caffe2 has no way to remove a workspace
        workspace.SwitchWorkspace(name)
        workspace.ResetWorkspace(root_folder)
    workspace.SwitchWorkspace("default")


def _why_no_cuda() -> str | None:
    """Say why tests marked `cuda` cannot run here; None where they can."""
    import torch

    if torch.version.cuda is None:
        return "this torch is built without CUDA"
    if not torch.cuda.is_available():
        return "torch sees no CUDA device"
    return None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip the tests that need a CUDA device where there is none, with the reason."""
    needing = [item for item in items if item.get_closest_marker("cuda")]
    if not needing:  # torch is not imported for a question that no test asks
        return
    reason = _why_no_cuda()
    if reason is not None:
        skip = pytest.mark.skip(reason=reason)
        for item in needing:
            item.add_marker(skip)


def pytest_collection_finish() -> None:
    """Have the collector pass over what the imports made: many tests collect."""
    gc.collect()
    gc.freeze()
