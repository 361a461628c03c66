# SPDX-License-Identifier: Apache-2.0
"""Measure what each library here gets wrong, and write the tables of docs/peers.md.

    python tools/make_peers.py

Three tables: hard but legal tensors in each library's ``from_dlpack``; the broken rules of
`bridge.conform`; every producer with every consumer. Takes some ten minutes.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from bridge.conform import RULES, Report, check
from bridge.conform.isolation import isolated
from bridge.conform.libraries import LIBRARIES, installed, setup_of, version_of
from bridge.conform.loading import loaded
from bridge.conform.pairs import check_pairs

PAGE = Path(__file__).parents[1] / "docs" / "peers.md"
MARKS = ("hard", "rules", "pairs")
LONGEST = 120  # characters of the reason why a pair has no exchange, or a wrong one

# What to pass on, the library it is of, and its values; None: the only right answer is an error.
HARD = {
    "negative strides": ("numpy", "np.arange(6.0)[::-1]", "np.arange(6.0)[::-1]"),
    "read-only NumPy array": ("numpy", "frozen()", "np.arange(6.0)"),
    "foreign byte order": ("numpy", "np.arange(6.0).astype('>f8')", "np.arange(6.0)"),
    "`complex.conj().imag` of torch": (
        "torch",
        "torch.tensor([1 + 2j, 3 + 4j]).conj().imag",
        "np.array([-2.0, -4.0])",
    ),
    "tensor that requires grad": ("torch", "torch.ones(3, requires_grad=True)", "None"),
    "storage smaller than its tensor": ("torch", "shrunk()", "None"),
    "`int64` beyond 32 bits": ("torch", "torch.tensor([2**40 + 1])", "np.array([2**40 + 1])"),
    "JAX array, which is immutable": ("jax", "jax.numpy.arange(6.0)", "np.arange(6.0)"),
    "string of TensorFlow": ("tensorflow", "tf.constant('text')", "None"),
}
# As people write their names.
CONSUMERS = {
    "bridge": "bridge",
    "torch": "torch",
    "numpy": "NumPy",
    "jax": "JAX",
    "tensorflow": "TensorFlow",
    "tvm_ffi": "tvm-ffi",
}
IMMUTABLE = ("frozen()", "jax.numpy.arange(6.0)")
# How memory is written through a consumer's tensor, if it can be; JAX's and TensorFlow's cannot.
WRITABLE = {
    "bridge": "not y.readonly",
    "torch": "y.data_ptr() == np.asarray(x).ctypes.data",
    "numpy": "y.flags.writeable",
    "tvm_ffi": "np.from_dlpack(y).flags.writeable",
}
PROGRAM = """
import numpy as np

def frozen():
    x = np.arange(6.0)
    x.flags.writeable = False
    return x

def shrunk():
    x = torch.ones(1 << 24)
    x.untyped_storage().resize_(0)
    return x

def answer():
    x = {source}
    expected = {expected}
    try:
        y = from_dlpack(x)
    except Exception:
        return "refused"
    if expected is None:
        # Strings have no memory to share; a copy of them is as right as an error.
        right = "text" in {source!r} and getattr(y, "tolist", str)() == b"text"
        return "right" if right else "**taken**"
    try:
        values = to_numpy(y.resolve_neg() if hasattr(y, "resolve_neg") else y)
    except Exception:
        return "**wrong values**"
    if not np.array_equal(values, expected):
        return "**wrong values**"
    return "**writable**" if {immutable} and {writable} else "right"
"""


def hard_cell(source: tuple[str, str, str], consumer: str) -> str:
    """Return what a consumer makes of a hard tensor, in a forked process."""
    library, expression, expected = source
    if not (installed(library) and installed(consumer)):
        return ""
    program = setup_of(library).partition("\ndef ")[0] + "\n" + setup_of(consumer)
    program += PROGRAM.format(
        source=expression,
        expected=expected,
        immutable=expression in IMMUTABLE,
        writable=WRITABLE.get(consumer, "False"),
    )

    def run() -> str:
        names: dict[str, Any] = {}
        exec(compile(program, "<hard>", "exec"), names)
        return str(names["answer"]())

    how, found = isolated(run, 30)
    return str(found) if how == "done" else f"**{how}**"


def hard_table() -> str:
    """Return the table of hard tensors."""
    for name in CONSUMERS:
        if installed(name):
            loaded(name)
    rows = [["", *CONSUMERS.values()]]
    for case, source in HARD.items():
        rows.append([case, *(hard_cell(source, consumer) for consumer in CONSUMERS)])
    return table(rows)


def rules_table(reports: list[Report]) -> str:
    """Return the summary of the reports, and the table of the rules that a library breaks."""
    summary = [["", "version", "rules ok", "broken", "n/a"]]
    for one in reports:
        counts = (len(one.ok), len(one.broken), len(one.skipped))
        summary.append([one.name, one.version or "", *map(str, counts)])
    rows = [["rule", *(one.name for one in reports)]]
    outcomes: list[dict[str, Any]] = [
        {result.rule: result.outcome for result in one.results} for one in reports
    ]
    signs = {
        "ok": "ok",
        "n/a": "",
        "broken": "**broken**",
        "crash": "**crash**",
        "hang": "**hang**",
    }
    for rule in RULES:
        cells = [signs[found[rule]] for found in outcomes]
        if any("**" in cell for cell in cells):
            named = f"`{rule}`" if rule.level == "must" else f"`{rule}` (should)"
            rows.append([named, *cells])
    return f"{table(summary)}\n{table(rows)}"


def pairs_table(names: list[str]) -> str:
    """Return the table of every producer with every consumer, and the reasons."""
    found = {(one["producer"], one["consumer"]): one for one in check_pairs(names)}
    reasons: dict[str, int] = {}

    def cell(producer: str, consumer: str) -> str:
        one = found[producer, consumer]
        if one["outcome"] == "ok":
            return str(one["seen"])
        shown = "none" if one["outcome"] == "n/a" else f"**{one['outcome']}**"
        reason = str(one["seen"]).replace("|", "\\|")[:LONGEST]
        return f"{shown} ({reasons.setdefault(reason, len(reasons) + 1)})"

    rows = [["from \\ to", *names]]
    rows += [[producer, *(cell(producer, consumer) for consumer in names)] for producer in names]
    notes = [f"{number}. `{reason}`\n" for reason, number in reasons.items()]
    return "\n".join([table(rows), "".join(notes)]) if notes else table(rows)


def table(rows: list[list[str]]) -> str:
    """Return rows as a table of Markdown; the first is the head."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|---" * len(rows[0]) + "|")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure, and write the page."""
    names = [name for name in LIBRARIES if installed(name)]
    print(", ".join(f"{name} {version_of(name)}" for name in names), flush=True)
    wanted = sys.argv[1:] or MARKS
    for mark in wanted:
        if mark == "hard":
            found = hard_table()
        elif mark == "pairs":
            found = pairs_table(names)
        else:
            reports = []
            for name in names:
                reports.append(check(name))
                print(repr(reports[-1]), flush=True)
            found = rules_table(reports)
        before, _, after = PAGE.read_text(encoding="utf-8").split(f"<!-- {mark} -->\n")
        PAGE.write_text(
            f"{before}<!-- {mark} -->\n{found}<!-- {mark} -->\n{after}", encoding="utf-8"
        )


if __name__ == "__main__":
    main()
