# SPDX-License-Identifier: Apache-2.0
"""The timed loop, the same text in every interpreter that takes part.

Imports nothing but the standard library and keeps to Python 3.8, which the real Caffe2 needs.
"""

import gc
from time import perf_counter
from typing import Any, Callable, Dict  # noqa: UP035 - Python 3.8

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
