# SPDX-License-Identifier: Apache-2.0
"""The objects other than tensors that operators keep in blobs: counters, indexes, maps and others.

Follows counter_ops.h, index_ops.h, map_ops.h, atomic_ops.cc and dataset_ops.h in caffe2/operators,
PyTorch 1.8.1.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

from bridge import c10
from bridge.annotation import Any
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet


class Counter:
    """An integer that several threads may change."""

    def __init__(self, count: int = 0) -> None:
        self.count = count
        self._lock = threading.Lock()

    def add(self, step: int) -> int:
        """Add `step`; return the previous value."""
        with self._lock:
            before = self.count
            self.count = before + step
        return before

    def reset(self, count: int) -> int:
        """Set the value; return the previous one."""
        with self._lock:
            before, self.count = self.count, count
        return before


class Map:
    """A dictionary of integers, with the element types of its keys and values."""

    def __init__(self, keys: TypeMeta = c10.int32, values: TypeMeta = c10.int32) -> None:
        self.keys = keys
        self.values = values
        self.items: dict[int, int] = {}


class Mutex:
    """A lock for operators that read and write a blob from several threads."""

    def __init__(self) -> None:
        self.lock = threading.RLock()  # so that a thread does not wait for itself


class AtomicBool:
    """A truth value that operators set."""

    def __init__(self, value: bool = False) -> None:
        self.value = value


class Index:
    """Consecutive numbers from 1 for keys of one type, in the order in which the keys come.

    most: one more than the number of keys that it takes.
    """

    def __init__(self, dtype: TypeMeta = c10.int64, most: int = 2**31 - 1) -> None:
        self.dtype = dtype
        self.most = most
        self.frozen = False
        self.places: dict[Any, int] = {}
        self.lock = threading.Lock()


class Fields:
    """The names of the columns of nested lists, and the domain of each.

    Names are as ``a:b:c``. The field ``a:lengths`` has the lengths of the lists whose elements are
    the rows of the fields ``a:...``: their domain. Domain 0 are the records.

    `domains` has the domain of each field, `lengths` the field with the lengths of domain 1, 2, ...
    Raises EnforceNotMet: a field precedes its lengths. Follows TreeIterator,
    caffe2/operators/dataset_ops.h, PyTorch 1.8.1.
    """

    def __init__(self, names: Sequence[str]) -> None:
        self.names = list(names)
        parts = [name.split(":") for name in names]
        self.lengths = [i for i, one in enumerate(parts) if one[-1] == "lengths"]
        self.domains = [self._domain(i, parts) for i in range(len(parts))]
        for i, domain in enumerate(self.domains):
            if domain and self.lengths[domain - 1] >= i:
                lengths = self.names[self.lengths[domain - 1]]
                raise EnforceNotMet(
                    f"Field {self.names[i]!r} comes before {lengths!r}, its lengths."
                )

    def _domain(self, i: int, parts: list[list[str]]) -> int:
        """Return the domain of field `i`: the one whose lengths have the longest prefix of it."""
        best, level = 0, 1
        for domain, j in enumerate(self.lengths, 1):
            prefix = parts[j][:-1]
            if j != i and parts[i][: len(prefix)] == prefix and len(parts[j]) > level:
                best, level = domain, len(parts[j])
        return best

    @property
    def n_domains(self) -> int:
        """The number of domains, with the number of the records."""
        return len(self.lengths) + 1


class TreeCursor:
    """How many rows of each domain of `fields` have been read; no `offsets` before the first read.

    A reader holds `lock`, so that threads can share a cursor: each record goes to one of them.
    """

    def __init__(self, fields: Fields | None = None) -> None:
        self.fields = fields or Fields([])
        self.offsets: list[int] = []
        self.lock = threading.RLock()


class Record:
    """One record of a dataset, with the rows of its lists: one column per field.

    None where it was read from a message, which holds no columns, as in Caffe2.
    """

    def __init__(self, columns: list[Any] | None = None) -> None:
        self.columns = columns


for _class in (Counter, Map, Mutex, AtomicBool, Index, TreeCursor, Record):
    TypeMeta.Register(_class)
