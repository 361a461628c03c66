# SPDX-License-Identifier: Apache-2.0
"""The names of a table: what threads that look up blobs of their own share."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from bridge.caffe2 import core, workspace
from bridge.caffe2.workspaces.current import current

pytestmark = pytest.mark.usefixtures("fresh_workspace")


@pytest.mark.skipif("t" not in getattr(sys, "abiflags", ""), reason="this Python has the GIL")
def test_a_name_is_kept_as_the_interned_one() -> None:
    """Look-ups by an equal name count no reference to that."""
    fed, created, written = ("".join(("na", "me", end)) for end in "123")
    workspace.FeedBlob(fed, np.zeros(2))
    workspace.CreateBlob(created)
    net = core.Net("net")
    net.Copy(fed, written)
    workspace.RunNetOnce(net)
    for name in (fed, created, written):
        (kept,) = (one for one in current.blobs if one == name)
        assert kept is sys.intern("".join(name))
