# SPDX-License-Identifier: Apache-2.0
"""Dataset: records of nested lists, stored as columns.

Fields are named ``a:b:c``. A field ``a:lengths`` has the lengths of the lists whose elements are
the rows of ``a:...``; fields without one belong to the records. Follows TreeIterator and
TreeCursor, caffe2/operators/dataset_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from bridge.caffe2.blobs.objects import Fields
from bridge.caffe2.operators.base.checks import INT32, require
from bridge.caffe2.operators.datasets.columns import Column


class Dataset:
    """Columns, one per field.

    `limits` are the numbers of rows per domain.
    Raises EnforceNotMet: the numbers of columns and of fields differ, or lengths are not int32.
    """

    def __init__(self, fields: Fields, columns: list[Column]) -> None:
        fits = len(columns) == len(fields.names)
        require(fits, f"There are {len(columns)} columns, but {len(fields.names)} fields.")
        self.fields = fields
        self.columns = columns
        self.lengths = [self._lengths_of(field) for field in fields.lengths]
        self.limits = [
            min(
                (len(columns[i]) for i, one in enumerate(fields.domains) if one == domain),
                default=2**63 - 1,
            )
            for domain in range(fields.n_domains)
        ]

    def _lengths_of(self, field: int) -> Tensor:
        column = self.columns[field]
        if not len(column.items):
            return torch.zeros(0, dtype=torch.int32, device="cpu")
        require(
            column.dtype in INT32, f"Field {self.fields.names[field]!r}, lengths, must be int32."
        )
        lengths: Tensor = column.items.cpu()
        return lengths

    def sizes(self, offsets: Sequence[int], count: int) -> list[int]:
        """Return the number of rows per domain of the next `count` records, or the remaining ones.

        Raises EnforceNotMet: the offsets are beyond the end, the lengths of these records negative
        or beyond the rows.
        """
        n = self.fields.n_domains
        require(
            len(offsets) == n, f"The cursor has {len(offsets)} offsets, but there are {n} domains."
        )
        require(offsets[0] <= self.limits[0], "The cursor is beyond the end of the records.")
        sizes = [min(self.limits[0] - offsets[0], count)]
        for domain, lengths in enumerate(self.lengths, 1):
            parent = self._parent(domain)
            taken = lengths[offsets[parent] : offsets[parent] + sizes[parent]]
            size = int(taken.sum())
            name = self.fields.names[self.fields.lengths[domain - 1]]
            negative = bool((taken < 0).any())
            require(not negative, f"Field {name!r}, lengths, must not be negative.")
            require(
                offsets[domain] + size <= self.limits[domain],
                f"Field {name!r} exceeds the {self.limits[domain]} rows of its domain.",
            )
            sizes.append(size)
        return sizes

    def _parent(self, domain: int) -> int:
        """Return the domain of the lengths of `domain`."""
        return self.fields.domains[self.fields.lengths[domain - 1]]

    def offsets(self, first: Sequence[int]) -> Tensor:
        """Return the offsets of each record from those of the `first` on, and of the end.

        One row for each of all records, (records + 1, domains): the last rows are of the end.
        Raises EnforceNotMet: as `sizes`, or no column has the domain of the records.
        """
        limit = self.limits[0]
        require(limit < 2**63 - 1, "No column has the domain of the records.")
        self.sizes(first, limit)  # checks them
        columns = [torch.arange(first[0], first[0] + limit + 1, device="cpu").clamp(max=limit)]
        for domain, lengths in enumerate(self.lengths, 1):
            parent = self._parent(domain)
            ends = torch.constant_pad_nd(lengths.cumsum(0), (1, 0))
            columns.append(ends[columns[parent]] - ends[first[parent]] + first[domain])
        return torch.stack(columns, 1)

    def batch(self, offsets: Sequence[int], sizes: Sequence[int]) -> list[Column]:
        """Return a view of these rows of each column."""
        return [
            column.rows(offsets[domain], sizes[domain])
            for column, domain in zip(self.columns, self.fields.domains, strict=True)
        ]
