# SPDX-License-Identifier: Apache-2.0
"""The timed loop, the same text in every interpreter that takes part.

Imports nothing but the standard library and keeps to Python 3.8, which the real Caffe2 needs.
"""

import gc
from time import perf_counter
from typing import Any, Callable, Dict  # noqa: UP035 - Python 3.8

# How often the statement stands in the loop's body, so that the loop weighs little beside it.
REPEATS = 10


def compile_loop(statement: str, names: Dict[str, Any]) -> Callable[[int], float]:  # noqa: UP006
    """Make a function of the number of runs (at least) that gives seconds for one run.

    `names` are the globals of the statement. The garbage collector rests while the clock runs.
    """
    body = "\n".join("        " + statement for _ in range(REPEATS))
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
        turns = -(-number // REPEATS)
        collecting = gc.isenabled()
        gc.disable()
        try:
            return run(turns) / (turns * REPEATS)
        finally:
            if collecting:
                gc.enable()

    return seconds_each
