# SPDX-License-Identifier: Apache-2.0
"""AuditLog and Record: the conversions that an audit recorded, printed as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Record(NamedTuple):
    """One conversion.

    route: the call with source and target, as ``"from_dlpack: numpy.ndarray -> at.Tensor"``.
    copied: whether bytes were copied; otherwise memory is shared.
    nbytes: the number of bytes copied, counting repeated copies, or of bytes shared.
    reason: why bytes were copied; "" if they are shared.
    """

    route: str
    copied: bool
    nbytes: int
    reason: str

    @property
    def shared(self) -> bool:
        """Whether memory is shared; the opposite of `copied`."""
        return not self.copied

    @property
    def how(self) -> str:
        """``"shared"`` or ``"copied"``."""
        return "copied" if self.copied else "shared"

    @property
    def bytes(self) -> int:
        """The same as `nbytes`."""
        return self.nbytes


class AuditLog:
    """The conversions that an audit recorded, in the order in which they ended; prints as a table.

    >>> import bridge
    >>> with bridge.audit() as log:
    ...     x = bridge.from_dlpack(b"abc", copy=True)
    >>> print(log)
    route                              how     bytes  reason
    from_dlpack: bytes -> at.Tensor    copied      3  copy=True was asked for
    1 conversion, 3 bytes copied
    """

    __slots__ = ("_records",)

    _records: list[Record]

    def __init__(self) -> None:
        self._records = []

    @property
    def records(self) -> list[Record]:
        """The records so far, in a new list."""
        return list(self._records)

    @property
    def copied_bytes(self) -> int:
        """The number of bytes copied by all conversions."""
        return sum(record.nbytes for record in self._records if record.copied)

    @property
    def shared_bytes(self) -> int:
        """The number of bytes shared by all conversions."""
        return sum(record.nbytes for record in self._records if not record.copied)

    def __len__(self) -> int:
        return len(self._records)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.records)

    def __bool__(self) -> bool:
        return True

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            (record.route, record.how, str(record.nbytes), record.reason)
            for record in self._records
        ]

    def _summary(self) -> str:
        n = len(self._records)
        return f"{n} conversion{'' if n == 1 else 's'}, {self.copied_bytes} bytes copied"

    def __str__(self) -> str:
        rows = [("route", "how", "bytes", "reason"), *self._rows()]
        width = max(len(row[0]) for row in rows) + 2
        digits = max(len(row[2]) for row in rows)
        lines = [
            f"{route:<{width}}  {how:<6}  {nbytes:>{digits}}  {reason}".rstrip()
            for route, how, nbytes, reason in rows
        ]
        return "\n".join([*lines, self._summary()])

    def __repr__(self) -> str:
        return f"<AuditLog: {self._summary()}>"

    def _repr_html_(self) -> str:
        from html import escape

        head = "".join(f"<th>{name}</th>" for name in ("route", "how", "bytes", "reason"))
        body = "".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self._rows()
        )
        return (
            f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
            f"<p>{escape(self._summary())}</p>"
        )
