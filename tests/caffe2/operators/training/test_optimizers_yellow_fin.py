# SPDX-License-Identifier: Apache-2.0
"""What YellowFin refuses: a window of other sizes than it says, and fewer outputs than states."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from tests.helpers.isolate import isolated

pytestmark = pytest.mark.usefixtures("fresh_workspace")

STATE = ["param", "moment", "lr", "mu", "window", "g_avg", "g2_avg", "scalars"]
SIZES = {"lr": 1, "mu": 1, "scalars": 5}


@isolated
@pytest.mark.parametrize("width", [0, -1, -3, 4, 2**63 - 1, -(2**63)])
def test_a_width_that_the_window_does_not_have_is_refused(width: int) -> None:
    for name in [*STATE, "grad"]:
        value = np.ones(3 if name == "window" else SIZES.get(name, 4), np.float32)
        workspace.FeedBlob(name, value)
    workspace.FeedBlob("iteration", np.array([3], np.int64))
    operator = core.CreateOperator(
        "YellowFin", [*STATE, "grad", "iteration"], STATE, curv_win_width=width
    )
    with pytest.raises(EnforceNotMet, match="width"):
        workspace.RunOperatorOnce(operator)
    assert all((workspace.FetchBlob(name) == 1).all() for name in STATE)


@isolated
def test_fewer_outputs_than_states_are_refused() -> None:
    for name in [*STATE, "grad"]:
        value = np.ones(20 if name == "window" else SIZES.get(name, 4), np.float32)
        workspace.FeedBlob(name, value)
    workspace.FeedBlob("iteration", np.array([3], np.int64))
    operator = core.CreateOperator("YellowFin", [*STATE, "grad", "iteration"], STATE[:7])
    with pytest.raises(EnforceNotMet, match="outputs"):
        workspace.RunOperatorOnce(operator)
    assert all((workspace.FetchBlob(name) == 1).all() for name in STATE)
