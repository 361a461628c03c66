# SPDX-License-Identifier: Apache-2.0
"""The schemas of the operators are those that `record_schemas.py` printed from Caffe2."""

from __future__ import annotations

from pathlib import Path

import pytest

from bridge.caffe2.core import IsOperator
from bridge.caffe2.definitions.schemas import Schema, schema_of

WORDS = Path(__file__).parent.joinpath("recorded", "schemas.txt").read_text().split()
RECORDED = dict(word.split(":", 1) for word in WORDS)
REGISTERED = [op_type for op_type in sorted(RECORDED) if IsOperator(op_type)]
COUNTS = range(40)


@pytest.mark.parametrize("op_type", REGISTERED)
def test_each_schema_agrees_with_caffe2(op_type: str) -> None:
    found, expected = schema_of(op_type), Schema(RECORDED[op_type])
    for part in ("inputs", "outputs"):
        allowed, wanted = getattr(found, part), getattr(expected, part)
        assert [n for n in COUNTS if n in allowed] == [n for n in COUNTS if n in wanted], part
    for part in ("allowed", "forced", "shifts", "forced_shifts"):
        assert sorted(getattr(found, part)) == sorted(getattr(expected, part)), part
