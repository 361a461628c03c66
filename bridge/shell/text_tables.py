# SPDX-License-Identifier: Apache-2.0
"""Tables and progress: drawn by rich on a terminal where it is installed, plain text elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence
from types import TracebackType

from bridge.annotation import Any, Self

_INTERVAL = 0.1  # seconds between two updates of the progress


def as_json(value: Any) -> str:
    """Return JSON that people can read, one line per small item."""
    import json

    return json.dumps(value, indent=2, ensure_ascii=False)


def nbytes_text(nbytes: int) -> str:
    """Return a number of bytes for people.

    >>> from bridge.shell.text_tables import nbytes_text
    >>> nbytes_text(12), nbytes_text(5 << 20)
    ('12 B', '5.0 MiB')
    """
    if nbytes < 1024:
        return f"{nbytes} B"
    value = float(nbytes)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1024:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:.1f} TiB"


def print_table(head: Sequence[str], rows: Sequence[Sequence[str]], right: str = "") -> None:
    """Print a table; `right`: the columns that are numbers, as ``"2 3"``."""
    numbers = {int(number) for number in right.split()}
    coloured = not os.environ.get("NO_COLOR")
    if sys.stdout.isatty():
        try:
            from rich.console import Console
            from rich.table import Table
            from rich.text import Text
        except ImportError:
            _print_plain(head, rows, numbers)
            return
        table = Table(
            box=None, header_style="bold" if coloured else "", pad_edge=False, padding=(0, 2, 0, 0)
        )
        for i, name in enumerate(head):
            table.add_column(
                name, justify="right" if i in numbers else "left", overflow="fold", no_wrap=i == 0
            )
        for row in rows:
            styles = [_STYLES.get(cell.split(" ")[0], "") if coloured else "" for cell in row]
            table.add_row(*map(Text, row, styles))
        Console(highlight=False).print(table)
        return
    _print_plain(head, rows, numbers)


# The first words of a cell, and their style.
_STYLES = {"shared": "green", "copied": "yellow", "error:": "bold red", "broken:": "bold red"}


def _print_plain(head: Sequence[str], rows: Sequence[Sequence[str]], numbers: set[int]) -> None:
    lines = [list(head), *[list(row) for row in rows]]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    for line in lines:
        cells = [
            cell.rjust(width) if i in numbers else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        print("  ".join(cells).rstrip())


class Progress:
    """A progress bar on stderr, shown only on a terminal; a context manager.

    Called with the number of bytes that are done and the total. Without rich: a percentage.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._shown = 0.0
        self._task: Any = None
        self._bar: Any = None
        self._terminal = sys.stderr.isatty()
        if not self._terminal or os.environ.get("NO_COLOR"):
            return
        try:
            from rich import progress
            from rich.console import Console
        except ImportError:
            return
        self._bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TransferSpeedColumn(),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )

    def __call__(self, done: int, total: int) -> None:
        """Show that `done` of `total` bytes are done."""
        if not self._terminal:
            return
        now = time.monotonic()
        if done < total and now - self._shown < _INTERVAL:
            return
        self._shown = now
        if self._bar is None:
            print(
                f"\r{self._what} {done / max(total, 1):4.0%}", end="", file=sys.stderr, flush=True
            )
        elif self._task is None:
            self._task = self._bar.add_task(self._what, total=total, completed=done)
        else:
            self._bar.update(self._task, completed=done, total=total)

    def __enter__(self) -> Self:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()
        elif self._terminal and self._shown:
            print(f"\r{' ' * (len(self._what) + 5)}\r", end="", file=sys.stderr, flush=True)
