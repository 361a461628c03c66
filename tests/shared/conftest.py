# SPDX-License-Identifier: Apache-2.0
"""Each test here is a test of leaks, too: it leaves no descriptor, mapping or name behind."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.helpers.sharing import left_behind, remove_names


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    remove_names()
    before = left_behind()
    yield
    assert left_behind() == before
