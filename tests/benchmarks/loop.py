# SPDX-License-Identifier: Apache-2.0
"""The timed loop and its longer statements, the same text in every interpreter that takes part.

Imports nothing but the standard library and NumPy and keeps to Python 3.8, which the real Caffe2
needs.
"""

import gc
from time import perf_counter
from typing import Any, Callable, Dict  # noqa: UP035 - Python 3.8

import numpy as np

# How often the statement stands in the loop's body, so that the loop weighs little beside it.
REPEATS = 10


def compile_loop(
    statement: str,
    names: Dict[str, Any],  # noqa: UP006
    repeats: int = REPEATS,
) -> Callable[[int], float]:
    """Make a function of the number of runs (at least) that gives seconds for one run.

    `repeats` is 1 for what takes so long that the loop is nothing beside it. `names` are the
    globals of the statement. The garbage collector rests while the clock runs.
    """
    body = "\n".join("        " + statement for _ in range(repeats))
    source = (
        "def loop(turns):\n"
        "    start = perf_counter()\n"
        "    for _ in range(turns):\n" + body + "\n"
        "    return perf_counter() - start\n"
    )
    scope = dict(names, perf_counter=perf_counter)
    exec(source, scope)
    run = scope["loop"]

    def seconds_each(number: int) -> float:
        turns = -(-number // repeats)
        collecting = gc.isenabled()
        gc.disable()
        try:
            return run(turns) / (turns * repeats)
        finally:
            if collecting:
                gc.enable()

    return seconds_each


def strings() -> Any:
    """Give 100,000 strings, of lengths as words and lines have them, as an array of objects."""
    return np.array([b"x" * (i % 40) + b"%d" % i for i in range(100_000)], dtype=object)


def text() -> Any:
    """Give 100,000 short texts as an array of NumPy's fixed-width type."""
    return np.array(["word%d" % i for i in range(100_000)])  # noqa: UP031 - as above


def feed_and_fetch(feed: Callable[..., Any], fetch: Callable[..., Any]) -> Callable[[Any], Any]:
    """Make one call of the two."""

    def both(value: Any) -> Any:
        feed("fed_and_fetched", value)
        return fetch("fed_and_fetched")

    return both


def fed_runs(feed: Callable[..., Any], run: Callable[..., Any], net: str) -> Callable[[], None]:
    """Make a loop as tests of optimizers have it: 20 runs of a net, on other rows each time."""
    random = np.random.RandomState(1)
    fed = [
        (np.flatnonzero(random.randint(2, size=10)) // 2, np.array(random.rand(), np.float32))
        for _ in range(20)
    ]

    def runs() -> None:
        for indices, label in fed:
            feed("indices", indices)
            feed("label", label)
            run(net)

    return runs
