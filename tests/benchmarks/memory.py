# SPDX-License-Identifier: Apache-2.0
"""What an import weighs while it is held, and what is left when it is gone.

Each figure is of resident memory in a process of its own (`memory_probe`), so that what other
benchmarks freed cannot hide it. Resident memory is read from /proc, which Linux has.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.harness import Effort, Outcome, Row
from tests.helpers.routes import OPTIONAL, STATEMENTS, is_here

MIB = 1 << 20
ROOT = Path(__file__).parents[2]


def probe(*arguments: str) -> Any:
    """Run the probe in a fresh interpreter; what it reports."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.memory_probe", *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    return json.loads(done.stdout)


def rows(effort: Effort) -> Iterator[Row]:
    """Measure the weight of an import over tvm-ffi's, and the growth of every route."""
    ours = probe("held", "bridge", str(effort.held))
    peers = probe("held", "tvm_ffi", str(effort.held))
    ratio = ours / peers if peers else 0.0
    outcome = Outcome(ratio, f"{ours:.0f} B", f"{peers:.0f} B")
    yield Row("bytes per held import of a torch tensor", "tvm-ffi's", 1.6, 1.25, outcome)
    own = [group for group in STATEMENTS if group not in OPTIONAL]
    # A process for each framework, so that what one has freed cannot hide what another keeps.
    for groups in (own, *([group] for group in OPTIONAL if is_here(group))):
        for route, grown in probe("growth", str(effort.cycles), *groups).items():
            # A tenth of a MiB in a million cycles is noise of pages, not of objects.
            mib = max(0.0, round(grown / MIB, 1))
            outcome = Outcome(mib, f"{mib:.1f} MiB", "")
            yield Row(f"growth over a million cycles: {route}", "MiB", 1.0, 0.0, outcome)
