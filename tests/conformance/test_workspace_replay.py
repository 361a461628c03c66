# SPDX-License-Identifier: Apache-2.0
"""Lines of Python give here what they gave in the real Caffe2 (see workspace/record.py)."""

import gzip
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import caffe2
from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, scope, utils, workspace
from bridge.caffe2.core.cloning import net_names_used
from bridge.caffe2.core.steps import ExecutionStep
from bridge.caffe2.operators.objects.stats import registered_stats
from bridge.caffe2.proto import caffe2_pb2
from bridge.caffe2.workspaces.current import current
from tests.conformance.workspace.record import sequences
from tests.conformance.workspace.shown import shown

FOLDER = Path(__file__).parent / "workspace"
SEQUENCES = json.loads(gzip.decompress((FOLDER / "transcript.json.gz").read_bytes()))

# Lines that Caffe2 refuses and the bridge does not: Python's numbers and lists are fed, too.
NOT_REFUSED = {
    *(f'workspace.FeedBlob("bad", {value})' for value in ("[1, 2]", "3", "3.5", "(1,)")),
    'workspace.FeedBlob("bad", np.float32(1))',
    "p.run([[1.0, 2.0]])",
    "b.feed(3)",
    'workspace.blobs["d"] = 3',
}

# Kinds of errors that the real one raises and ours are, too.
KEPT_KINDS = ("AttributeError", "AssertionError", "KeyError")


@pytest.fixture(autouse=True)
def _as_in_a_new_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fresh_workspace: None
) -> Iterator[None]:
    monkeypatch.chdir(tmp_path)  # which the root folder "." is relative to
    monkeypatch.setattr(ExecutionStep, "_step_names_used", set())
    monkeypatch.setattr(current, "workspaces", {"default": current.workspace})
    monkeypatch.setattr(current.workspace, "_root_folder", ".")
    monkeypatch.setattr(registered_stats, "counts", {})
    used = set(net_names_used)
    net_names_used.clear()  # in place: nets and their clones share the set
    yield
    net_names_used.update(used)


@pytest.fixture(autouse=True)
def _as_caffe2(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Have the lines import what they imported there, and leave no trace of it."""
    monkeypatch.setattr(sys, "meta_path", list(sys.meta_path))
    caffe2.install(force=True)
    yield
    for name in [one for one in sys.modules if one.partition(".")[0] == "caffe2"]:
        del sys.modules[name]


def kinds_of(error: BaseException) -> set[str]:
    return {cls.__name__ for cls in type(error).__mro__}


def test_the_transcript_is_of_the_scripts() -> None:
    assert [[step["line"] for step in steps] for steps in SEQUENCES] == sequences()


@pytest.mark.parametrize("steps", SEQUENCES, ids=[one[0]["line"][:40] for one in SEQUENCES])
def test_lines_of_a_script_give_the_results_of_the_real_caffe2(steps: list[dict[str, Any]]) -> None:
    names = {
        "np": np,
        "caffe2_pb2": caffe2_pb2,
        "core": core,
        "scope": scope,
        "utils": utils,
        "workspace": workspace,
    }
    for step in steps:
        line = step["line"]
        if line in NOT_REFUSED:
            continue
        if "error" in step:
            with pytest.raises((EnforceNotMet, AttributeError, TypeError)) as raised:
                exec(line, names)
            met = kinds_of(raised.value)
            # Python itself refuses calls with wrong arguments, in both.
            assert type(raised.value) is not TypeError or "TypeError" in step["error"], line
            assert {one for one in step["error"] if one in KEPT_KINDS} <= met, line
        elif "result" in step:
            assert json.loads(json.dumps(shown(eval(line, names)))) == step["result"], line
        else:
            exec(line, names)
