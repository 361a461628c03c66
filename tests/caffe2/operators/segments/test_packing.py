# SPDX-License-Identifier: Apache-2.0
"""PackSegments on int64 lengths, which no kernel takes."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import torch

from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, workspace

pytestmark = pytest.mark.usefixtures("fresh_workspace")

RUN = """
import sys
import numpy as np
from bridge.caffe2 import core, workspace
workspace.FeedBlob("lengths", np.array([2, 0, 1]))
workspace.FeedBlob("x", np.ones((3, 2), np.float32))
workspace.RunOperatorOnce(core.CreateOperator("PackSegments", ["lengths", "x"], ["y"]))
assert workspace.FetchBlob("y").sum() == 6
print("sympy" in sys.modules)
"""


def test_int64_lengths_are_packed_without_symbolic_arithmetic() -> None:
    done = subprocess.run([sys.executable, "-c", RUN], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_negative_int64_lengths_are_refused() -> None:
    workspace.FeedBlob("x", np.ones((2, 2), np.float32))
    for lengths in ([3, -1], [-1, -1]):
        workspace.FeedBlob("lengths", np.array(lengths))
        with pytest.raises(EnforceNotMet, match="PackSegments"):
            workspace.RunOperatorOnce(core.CreateOperator("PackSegments", ["lengths", "x"], ["y"]))


def test_packing_by_int64_lengths_is_compiled_as_one_graph() -> None:
    net = core.Net("packing")
    net.PackSegments(["lengths", "x"], "y")
    module = caffe2.to_module(net, inputs=["lengths", "x"], outputs=["y"])
    lengths, x = torch.tensor([2, 0, 1]), torch.arange(6.0).view(3, 2)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        compiled = torch.compile(module, fullgraph=True, backend="eager")
        torch.testing.assert_close(compiled(lengths, x), module(lengths, x))
