# SPDX-License-Identifier: Apache-2.0
"""The files that Print and Summarize write."""

from __future__ import annotations

import os

from bridge.caffe2.operators.base.torch_operator import TorchOperator


def output_file(op: TorchOperator, suffix: str) -> str | None:
    """Return the path of <input 0>`suffix` in the workspace's root folder, truncated.

    None unless the argument `to_file` is set.
    """
    if not op.GetSingleArgument("to_file", 0):
        return None
    folder = str(op._workspace._root_folder)
    path = os.path.join(folder, f"{op._definition.inputs[0]}{suffix}")
    with open(path, "wb"):
        pass
    return path
