# SPDX-License-Identifier: Apache-2.0
"""Numbers by element type: a table that does not ask a type for its hash, which it would fix.

A TypeMeta that is hashed before torch is imported never has the hash of its ``torch.dtype``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from bridge.c10.type_meta import TypeMeta


class TypeTable(Mapping[TypeMeta, int]):
    """A read-only table of the numbers of types; of any types but registered classes."""

    def __init__(self, *rows: tuple[TypeMeta, int]) -> None:
        self._rows = {meta.name: (meta, value) for meta, value in rows}

    def __getitem__(self, meta: TypeMeta) -> int:
        found = self._rows.get(meta.name)
        if found is None:
            raise KeyError(meta)
        return found[1]

    def __iter__(self) -> Iterator[TypeMeta]:
        return iter([meta for meta, _ in self._rows.values()])

    def __len__(self) -> int:
        return len(self._rows)
