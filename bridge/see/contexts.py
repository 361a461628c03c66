# SPDX-License-Identifier: Apache-2.0
"""Context managers that observe conversions: `Audit` logs them, `NoCopy` forbids copies.

Contexts are bound by ``contextvars``: they have no effect in other threads or asyncio tasks, except
tasks created inside, which start with a copy of the context. Open contexts form a linked list, the
innermost first. A closed context is marked and skipped wherever a list still contains it. So
contexts may be closed in any order and in any thread, as by a generator that is finalized late.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from types import TracebackType
from typing import Any, NamedTuple

from bridge.c10 import reports
from bridge.c10.errors import EnforceBufferError
from bridge.c10.tensor_impl import TensorImpl
from bridge.see.type_names import type_name


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


class _Link:
    """An open context: its log, or None if it forbids copies; and the enclosing context."""

    __slots__ = ("alive", "log", "outer")

    def __init__(self, log: AuditLog | None, outer: _Link | None) -> None:
        self.log = log
        self.outer = outer
        self.alive = True


class _Conversion:
    """A conversion in progress, and the bytes that it has copied so far."""

    __slots__ = ("copied", "reasons", "route")

    def __init__(self, route: str) -> None:
        self.route = route
        self.copied = 0
        self.reasons: list[str] = []


# The number of contexts that are open in the process; torch.compile's graphs are guarded by it.
n_open = 0
_chain: ContextVar[_Link | None] = ContextVar("bridge.see.chain", default=None)
_current: ContextVar[_Conversion | None] = ContextVar("bridge.see.current", default=None)
# Records of conversions that are recorded together, if they succeed.
_held: ContextVar[list[Record] | None] = ContextVar("bridge.see.held", default=None)
_counting = allocate_lock()


def _open_links() -> Iterator[_Link]:
    link = _chain.get()
    while link is not None:
        if link.alive:
            yield link
        link = link.outer


def _route(call: str, source: object, target: str) -> str:
    return (
        f"{call}: {source if isinstance(source, reports.Label) else type_name(source)} -> {target}"
    )


def _nbytes_of(x: Any) -> int | None:
    """Return the size of the elements of `x` in bytes; None if `x` does not report it."""
    if isinstance(x, TensorImpl):
        return int(x.numel()) * int(x.dtype().itemsize) if x.defined() else 0
    if isinstance(x, (bytes, bytearray)):
        return len(x)
    try:
        nbytes = getattr(x, "nbytes", None)
        if callable(nbytes):
            nbytes = nbytes()
        if nbytes is None:
            # TensorFlow's tensors report the number of elements only
            nbytes = int(x.shape.num_elements()) * int(x.dtype.size)
        return int(nbytes)
    except (AttributeError, TypeError, ValueError, RuntimeError, NotImplementedError):
        return None


def _record(record: Record) -> None:
    held = _held.get()
    if held is not None:
        held.append(record)
        return
    for link in _open_links():
        if link.log is not None:
            link.log._records.append(record)


class _Observer:
    """Records conversions in the logs of the open contexts, and refuses copies."""

    def outermost(self) -> bool:
        """Return whether this context is observed and no conversion is under way in it."""
        return _current.get() is None and any(True for _ in _open_links())

    def run(
        self,
        call: str,
        source: object,
        target: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        """Return ``function(*args, **kwargs)``, the conversion `call` of `source` to `target`."""
        conversion = _Conversion(_route(call, source, target))
        _current.set(conversion)
        try:
            result = function(*args, **kwargs)
        finally:
            _current.set(None)
        if conversion.reasons:
            _record(
                Record(conversion.route, True, conversion.copied, "; ".join(conversion.reasons))
            )
        else:
            nbytes = _nbytes_of(result)
            if nbytes is None:
                nbytes = _nbytes_of(source) or 0
            _record(Record(conversion.route, False, nbytes, ""))
        return result

    def shared(self, call: str, source: object, target: str, nbytes: int) -> None:
        """Record a finished conversion that copied nothing."""
        _record(Record(_route(call, source, target), False, nbytes, ""))

    def together(self, function: Callable[..., Any], args: tuple[Any, ...]) -> Any:
        """Return ``function(*args)``; record the conversions in it only if it succeeds."""
        records: list[Record] = []
        outer = _held.set(records)
        try:
            result = function(*args)
        finally:
            _held.reset(outer)
        for record in records:
            _record(record)
        return result

    def copying(self, nbytes: int, reason: str) -> None:
        """Record, or refuse with BufferError, a copy in the conversion under way."""
        conversion = _current.get()
        if conversion is None or (reason == reports.PRODUCER and conversion.reasons):
            return
        call, _, route = conversion.route.partition(": ")
        if call == "share":
            if reason != reports.INTO_SHARED:
                return  # on the way into the segment: part of the copy that was asked for
        elif any(link.log is None for link in _open_links()):
            raise EnforceBufferError(
                f"{route} would copy {nbytes} bytes ({reason}), which bridge.no_copy() forbids.",
                call,
            )
        conversion.copied += nbytes
        if reason not in conversion.reasons:
            conversion.reasons.append(reason)


reports.register_observer(_Observer())


class _Context:
    """The base class of `Audit` and `NoCopy`: a context manager that is not reentrant."""

    __slots__ = ("_link",)

    _link: _Link | None

    def __init__(self) -> None:
        self._link = None

    def _enter(self, log: AuditLog | None) -> None:
        global n_open
        with _counting:
            if self._link is not None:
                raise RuntimeError(
                    f"This {type(self).__name__} is entered already; create another one."
                )
            link = _Link(log, _chain.get())
            _chain.set(link)  # fails without memory: before the rest, which cannot
            self._link = link
            reports.count(1)
            n_open += 1

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        global n_open
        link = self._link
        if link is None:
            return
        link.alive = False  # needs no memory: whatever fails below, the context is closed
        with _counting:
            if self._link is None:
                return
            self._link = None
            reports.count(-1)
            n_open -= 1
        innermost = _chain.get()
        while innermost is not None and not innermost.alive:
            innermost = innermost.outer
        _chain.set(innermost)


class NoCopy(_Context):
    """The context manager that `bridge.no_copy` returns."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._enter(None)


class Audit(_Context):
    """The context manager that `bridge.audit` returns; ``with`` binds its AuditLog."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        super().__init__()
        self._log = AuditLog()

    def __enter__(self) -> AuditLog:
        self._enter(self._log)
        return self._log
