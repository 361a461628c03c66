# SPDX-License-Identifier: Apache-2.0
"""The flags of a command line: which are taken, and which are refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from bridge import caffe2
from bridge.caffe2 import workspace
from bridge.caffe2.base.global_init import GetGlobalInitArgs
from tests.helpers.workspaces import refused

LIMIT = "--caffe2_max_keep_on_shrink_memory"
KEEP = "--caffe2_keep_on_shrink"


def flags() -> tuple[bool, int]:
    return (
        caffe2.FLAGS.caffe2_keep_on_shrink,
        caffe2.FLAGS.caffe2_max_keep_on_shrink_memory,
    )


@pytest.fixture(autouse=True)
def _flags_are_put_back() -> Iterator[None]:
    keep, limit = flags()
    yield
    caffe2.FLAGS.caffe2_keep_on_shrink = keep
    caffe2.FLAGS.caffe2_max_keep_on_shrink_memory = limit


def test_known_flags_are_set_and_others_kept() -> None:
    before = GetGlobalInitArgs()
    workspace.GlobalInit(["program", f"{KEEP}=false", f"{LIMIT}=1024", "--caffe2_log_level=2"])
    assert flags() == (False, 1024)
    assert GetGlobalInitArgs()[len(before) :] == [
        f"{KEEP}=false",
        f"{LIMIT}=1024",
        "--caffe2_log_level=2",
    ]
    workspace.GlobalInit(["program", KEEP])
    assert flags() == (True, 1024)
    workspace.GlobalInit([])
    workspace.GlobalInit(("program",))


@pytest.mark.parametrize(
    ("args", "kind"),
    [
        (None, TypeError),
        (3, TypeError),
        ("program", TypeError),
        (["program", 1], TypeError),
        (["program", f"{KEEP}=0", f"{LIMIT}=many"], ValueError),
        (["program", f"{KEEP}=0", f"{LIMIT}=--5"], ValueError),
        (["program", f"{KEEP}=0", f"{LIMIT}={2**63}"], ValueError),
        (["program", f"{LIMIT}=5", f"{KEEP}=2"], ValueError),
    ],
)
def test_refused_arguments_change_no_flag(args: Any, kind: type[Exception]) -> None:
    before = flags(), GetGlobalInitArgs()
    with pytest.raises(kind) as raised:
        workspace.GlobalInit(args)
    refused(raised.value, kind=kind)
    assert (flags(), GetGlobalInitArgs()) == before


def test_operators_fail_on_floating_point_exceptions_where_the_flag_says_so(fresh_workspace):
    import numpy as np

    from bridge.caffe2 import core, workspace

    workspace.FeedBlob("one", np.array([1.0], np.float32))
    workspace.FeedBlob("zero", np.array([0.0], np.float32))
    net = core.Net("divide")
    net.Div(["one", "zero"], "out")
    workspace.CreateNet(net)
    flag = "--caffe2_operator_throw_if_fp_exceptions="
    workspace.RunNet(net)
    workspace.RunNet(net)
    core.GlobalInit(["caffe2", f"{flag}1"])
    try:
        with pytest.raises(RuntimeError, match="division by zero"):
            workspace.RunNet(net)
    finally:
        core.GlobalInit(["caffe2", f"{flag}0"])
    workspace.RunNet(net)
