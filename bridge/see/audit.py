# SPDX-License-Identifier: Apache-2.0
"""Contexts that watch conversions: `Audit` writes them down, `NoCopy` refuses copies.

A context is bound to where it was entered by ``contextvars``: another thread does not feel it, nor
does another asyncio task, unless it was started inside (a task begins with a copy of the context
that creates it). Contexts are links of a chain, innermost first. One that was left is dead and
passed over wherever it still hangs in a chain, so they may end in any order: that of a generator
which is closed late, or in another thread, does no harm to others.
"""

from __future__ import annotations

from _thread import allocate_lock
from contextvars import ContextVar

from bridge.c10 import reports
from bridge.c10.errors import EnforceBufferError
from bridge.see.naming import kind_of, nbytes_of
from bridge.see.record import AuditLog, Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import TracebackType
    from typing import Any

__all__ = ["Audit", "NoCopy"]


class _Link:
    """One entered context: its log, or None where it forbids copies; and the one around it."""

    __slots__ = ("alive", "log", "outer")

    def __init__(self, log: AuditLog | None, outer: _Link | None) -> None:
        self.log = log
        self.outer = outer
        self.alive = True


class _Conversion:
    """A conversion that is under way, and what it has copied so far."""

    __slots__ = ("copied", "reasons", "route")

    def __init__(self, route: str) -> None:
        self.route = route
        self.copied = 0
        self.reasons: list[str] = []


_chain: ContextVar[_Link | None] = ContextVar("bridge.see.chain", default=None)
_underway: ContextVar[_Conversion | None] = ContextVar("bridge.see.underway", default=None)
_counting = allocate_lock()


def _living() -> Iterator[_Link]:
    link = _chain.get()
    while link is not None:
        if link.alive:
            yield link
        link = link.outer


def _route(call: str, source: object, target: str) -> str:
    return f"{call}: {source if isinstance(source, reports.Label) else kind_of(source)} -> {target}"


def _write(record: Record) -> None:
    for link in _living():
        if link.log is not None:
            link.log._records.append(record)


class _Observer(reports.Observer):
    """Records conversions in the logs of the open contexts, and refuses copies."""

    def outermost(self) -> bool:
        return _underway.get() is None and any(True for _ in _living())

    def run(
        self,
        call: str,
        source: object,
        target: str,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Any:
        conversion = _Conversion(_route(call, source, target))
        _underway.set(conversion)
        try:
            result = function(*args, **kwargs)
        finally:
            _underway.set(None)
        if conversion.reasons:
            _write(Record(conversion.route, True, conversion.copied, "; ".join(conversion.reasons)))
        else:
            nbytes = nbytes_of(result)
            if nbytes is None:
                nbytes = nbytes_of(source) or 0
            _write(Record(conversion.route, False, nbytes, ""))
        return result

    def shared(self, call: str, source: object, target: str, nbytes: int) -> None:
        _write(Record(_route(call, source, target), False, nbytes, ""))

    def copying(self, nbytes: int, reason: str) -> None:
        conversion = _underway.get()
        if conversion is None or (reason == reports.PRODUCER and conversion.reasons):
            return
        if any(link.log is None for link in _living()):
            call, _, route = conversion.route.partition(": ")
            raise EnforceBufferError(
                f"{route} would copy {nbytes} bytes ({reason}), and bridge.no_copy() forbids "
                "copies.",
                call,
            )
        conversion.copied += nbytes
        if reason not in conversion.reasons:
            conversion.reasons.append(reason)


reports.register_observer(_Observer())


class _Watch:
    """What `audit` and `no_copy` have in common: to be entered, and left, once at a time."""

    __slots__ = ("_link",)

    _link: _Link | None

    def __init__(self) -> None:
        self._link = None

    def _enter(self, log: AuditLog | None) -> None:
        with _counting:
            if self._link is not None:
                raise RuntimeError(
                    f"This {type(self).__name__} is entered already; make another one."
                )
            self._link = _Link(log, _chain.get())
            reports.count(1)
        _chain.set(self._link)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        with _counting:
            if self._link is None:
                return
            self._link.alive = False
            self._link = None
            reports.count(-1)
        innermost = _chain.get()
        while innermost is not None and not innermost.alive:
            innermost = innermost.outer
        _chain.set(innermost)


class NoCopy(_Watch):
    """What `bridge.no_copy` gives, to be entered by ``with``."""

    __slots__ = ()

    def __enter__(self) -> None:
        self._enter(None)


class Audit(_Watch):
    """What `bridge.audit` gives, to be entered by ``with``, which gives its AuditLog."""

    __slots__ = ("_log",)

    def __init__(self) -> None:
        super().__init__()
        self._log = AuditLog()

    def __enter__(self) -> AuditLog:
        self._enter(self._log)
        return self._log
