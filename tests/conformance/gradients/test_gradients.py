# SPDX-License-Identifier: Apache-2.0
"""The gradient operators of operators and nets are those that the real Caffe2 makes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core
from bridge.caffe2.proto import caffe2_pb2
from tests.conformance.gradients.questions import answer_about_net, answer_about_operator

with gzip.open(Path(__file__).with_name("recorded.json.gz"), "rt") as _lines:
    RECORDED = [json.loads(line) for line in _lines]
OPERATORS = [one for one in RECORDED if isinstance(one[0], list)]
NETS = [one for one in RECORDED if isinstance(one[0], dict)]


def readable(answer: dict[str, Any]) -> dict[str, Any]:
    return {
        **answer,
        "ops": [caffe2_pb2.OperatorDef.FromString(bytes.fromhex(op)) for op in answer["ops"]],
    }


def test_there_is_much_to_compare() -> None:
    assert len({question[0] for question, answer in OPERATORS if answer is not None}) > 300
    assert sum(answer is not None for _, answer in NETS) > 900


@pytest.mark.parametrize("op_type", sorted({question[0] for question, _ in OPERATORS}))
def test_each_operator_gets_the_gradient_of_caffe2(op_type: str) -> None:
    for question, answer in OPERATORS:
        if question[0] != op_type:
            continue
        if answer is None:
            with pytest.raises(EnforceNotMet):
                answer_about_operator(core, *question)
        else:
            ours = answer_about_operator(core, *question)
            assert readable(ours) == readable(answer), question
            assert ours == answer, question


@pytest.mark.parametrize("part", range(15))
def test_each_net_gets_the_gradients_of_caffe2(part: int) -> None:
    for question, answer in NETS[part::15]:
        if answer is None:
            with pytest.raises(EnforceNotMet):
                answer_about_net(core, question)
        else:
            ours = answer_about_net(core, question)
            assert readable(ours) == readable(answer), question
            assert ours == answer, question
