# SPDX-License-Identifier: Apache-2.0
"""Rows of text files."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace

pytest.importorskip("torch")
pytestmark = pytest.mark.usefixtures("fresh_workspace")

FLOAT, STRING = int(core.DataType.FLOAT), int(core.DataType.STRING)


def open_file(path, **arguments):
    given = {"filename": str(path), "field_types": [STRING, FLOAT], **arguments}
    workspace.RunOperatorOnce(core.CreateOperator("CreateTextFileReader", [], ["r"], **given))


def read(count, outputs=("names", "numbers")):
    workspace.RunOperatorOnce(
        core.CreateOperator("TextFileReaderRead", ["r"], list(outputs), batch_size=count)
    )
    return [workspace.FetchBlob(name) for name in outputs]


def test_rows_are_read_in_batches_over_all_passes(tmp_path):
    path = tmp_path / "rows"
    path.write_text("a\t0.5\nb\t-24342.64\nc\t1e3\n")
    open_file(path, num_passes=2)
    names, numbers = read(2)
    assert names.tolist() == [b"a", b"b"]
    np.testing.assert_array_equal(numbers, np.array([0.5, -24342.64], np.float32))
    assert read(3)[0].tolist() == [b"c", b"a", b"b"]
    assert read(3)[0].tolist() == [b"c"]
    names, numbers = read(3)
    assert names.shape == numbers.shape == (0,)


def test_files_and_fields_that_do_not_fit_are_refused(tmp_path):
    path = tmp_path / "rows"
    path.write_text("a\tb\nc\n")
    with pytest.raises(EnforceNotMet, match="cannot be read"):
        open_file(tmp_path / "absent")
    with pytest.raises(EnforceNotMet, match="FLOAT or STRING"):
        open_file(path, field_types=[STRING, 2])
    open_file(path)
    with pytest.raises(EnforceNotMet, match="2 fields and 1 outputs"):
        read(1, ["names"])
    with pytest.raises(EnforceNotMet, match="not a number"):
        read(1)
    with pytest.raises(EnforceNotMet, match="has 1 fields, not 2"):
        read(1)
