# SPDX-License-Identifier: Apache-2.0
"""A selection of torch's table of operations; ``python -m tests.opinfo.run`` runs all of it."""

from __future__ import annotations

import pytest

from tests.opinfo.run import run, table

pytest.importorskip("expecttest", reason="torch's table of operations needs it")

# Operations that differ by design.
EXCEPTIONS = {
    "linalg.lu_solve": "torch marks its out= as to be conjugated, which other views do not see",
    "native_batch_norm": "writes running statistics, which it refuses in read-only memory",
    "_native_batch_norm_legit": "likewise",
    "_batch_norm_with_update": "likewise",
    "nn.functional.batch_norm": "likewise",
    "nn.functional.instance_norm": "likewise",
}


@pytest.mark.filterwarnings("ignore")  # of torch's samples
def test_a_selection_of_torchs_operations_gives_the_same_on_our_tensors() -> None:
    selected = table()[5::14]
    routes = ("function", "function_on_readonly", "method", "in_place", "in_place_overlapping")
    found = list(run(selected, ("float32",), (*routes, "out", "out_overlapping"), most=1))
    found += run(selected[::4], ("int64", "complex64", "bool"), (*routes, "out"), most=1)
    assert len(found) > 200
    assert [one for one in found if one[3] != "same" and one[0] not in EXCEPTIONS] == []
