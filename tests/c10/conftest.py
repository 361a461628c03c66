# SPDX-License-Identifier: Apache-2.0
"""Allocators are process-wide: whatever a test sets is taken back after it."""

from collections.abc import Iterator

import pytest

from bridge import c10

from .host_allocators import HostAllocator


@pytest.fixture
def keep_cpu_allocator() -> Iterator[c10.Allocator]:
    """The CPU's allocator, set again afterwards."""
    original = c10.GetAllocator("cpu")
    yield original
    c10.SetAllocator("cpu", original)


@pytest.fixture
def cpu_allocator(keep_cpu_allocator: c10.Allocator) -> HostAllocator:
    """A counting allocator that serves the CPU during the test."""
    allocator = HostAllocator()
    c10.SetAllocator("cpu", allocator)
    return allocator


@pytest.fixture
def ext_dev_allocator() -> HostAllocator:
    """A counting host allocator that serves `ext_dev` from now on."""
    allocator = HostAllocator()
    c10.SetAllocator("ext_dev", allocator)
    return allocator
