# SPDX-License-Identifier: Apache-2.0
"""Subjects for `check`: a producer, a consumer, and both with a C exchange table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tests.conform import subject_consumer, subject_producer, subject_table
from tests.conform.subject_producer import Array


class Subject:
    """Both roles; without a table."""

    name = "plain"

    def make(self, array: np.ndarray) -> Array:
        return Array(array)

    def from_dlpack(self, x: Any, **kwargs: Any) -> Any:
        return subject_consumer.from_dlpack(x, **kwargs)

    def to_numpy(self, tensor: Any) -> np.ndarray:
        return tensor.array  # type: ignore[no-any-return]


class TableSubject(Subject):
    """A subject whose type of tensors has a C exchange table."""

    name = "with a table"

    def __init__(self) -> None:
        self.type = type("TableArray", (Array,), {"__slots__": ()})
        self.type.__dlpack_c_exchange_api__ = subject_table.table(self.type)  # type: ignore[attr-defined]
        subject_table.KIND[:] = [self.type]

    def make(self, array: np.ndarray) -> Any:
        return self.type(array)


@contextmanager
def faults(*names: str) -> Iterator[None]:
    """Give the subjects faults."""
    subject_producer.FAULTS.update(names)
    try:
        yield
    finally:
        subject_producer.FAULTS.clear()
