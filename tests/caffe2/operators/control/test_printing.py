# SPDX-License-Identifier: Apache-2.0
"""Print: the lines of Caffe2's, on standard error or in a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bridge import c10
from bridge.caffe2 import core, workspace


@pytest.fixture(autouse=True)
def printing_to_a_folder(fresh_workspace: None, tmp_path: Path) -> None:
    workspace.ResetWorkspace(str(tmp_path))


def printed(value: Any, folder: Path, **args: Any) -> bytes:
    """What the file has after Print."""
    workspace.FeedBlob("x", value)
    workspace.RunOperatorOnce(core.CreateOperator("Print", ["x"], [], to_file=1, **args))
    return (folder / "x.log").read_bytes()


# As the real Caffe2 wrote them.
@pytest.mark.parametrize(
    ("value", "line"),
    [
        (
            np.array([[1.5, 2e10, 1e-7, np.nan]], np.float32),
            b"float. Dims: (1,4,): 1.5,2e+10,1e-07,nan",
        ),
        (np.array([0.1, 1 / 3]), b"double. Dims: (2,): 0.1,0.333333"),
        (np.array([1, -2], np.int32), b"int. Dims: (2,): 1,-2"),
        (np.array([1, -2]), b"long int. Dims: (2,): 1,-2"),
        (np.array([True, False]), b"bool. Dims: (2,): 1,0"),
        (np.array([65, 1], np.uint8), b"unsigned char. Dims: (2,): A,\x01"),
        (np.array([b"ab", b"c"], object), b"std::basic_string<char>. Dims: (2,): ab,c"),
        (np.zeros((0, 3), np.float32), b"float. Dims: (0,3,): "),
        (np.array(1.5, np.float32), b"float. Dims: (): 1.5"),
    ],
)
def test_each_value_is_printed_as_caffe2_prints_it(value: Any, line: bytes, tmp_path: Path) -> None:
    assert printed(value, tmp_path) == b"Tensor x of type " + line + b"\n"


def test_limit_cuts_the_elements(tmp_path: Path) -> None:
    assert printed(np.arange(5), tmp_path, limit=2).endswith(b": 0,1\n")
    assert printed(np.arange(2000), tmp_path).endswith(b",998,999\n")


def test_every_n_prints_each_nth_run(tmp_path: Path) -> None:
    workspace.FeedBlob("x", np.arange(2))
    operator = core.CreateOperator("Print", ["x"], [], to_file=1, every_n=2)
    workspace.RunOperatorMultiple(operator, 5)
    assert len((tmp_path / "x.log").read_bytes().splitlines()) == 3


def test_lines_go_to_standard_error(capfd: pytest.CaptureFixture[str]) -> None:
    workspace.FeedBlob("x", np.arange(2))
    workspace.RunOperatorOnce(core.CreateOperator("Print", ["x"], []))
    assert capfd.readouterr().err == "Tensor x of type long int. Dims: (2,): 0,1\n"


def test_a_blob_that_is_not_a_tensor_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    workspace.FeedBlob("x", "text")
    workspace.RunOperatorOnce(core.CreateOperator("Print", ["x"], []))
    assert capfd.readouterr().err == "Blob x is not a tensor\n"


@pytest.mark.parametrize("dtype", [np.float16, np.int8, np.int16])
def test_types_that_are_not_printed_are_refused(dtype: Any, tmp_path: Path) -> None:
    with pytest.raises(c10.EnforceNotMet):
        printed(np.zeros(2, dtype), tmp_path)


def test_every_n_is_positive() -> None:
    workspace.FeedBlob("x", np.arange(2))
    with pytest.raises(c10.EnforceNotMet, match="every_n"):
        workspace.RunOperatorOnce(core.CreateOperator("Print", ["x"], [], every_n=0))
