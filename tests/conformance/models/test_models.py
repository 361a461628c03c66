# SPDX-License-Identifier: Apache-2.0
"""Layers add the operators and the parameters that those of the real Caffe2 add."""

from __future__ import annotations

import builtins
import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, cnn, model_helper
from tests.conformance.models.scenario import QUESTIONS, answer

MODULES = SimpleNamespace(brew=brew, cnn=cnn, model_helper=model_helper)

with gzip.open(Path(__file__).with_name("recorded.json.gz"), "rt") as _lines:
    RECORDED = [json.loads(line) for line in _lines]


def test_every_question_has_a_recorded_answer() -> None:
    assert [question for question, _ in RECORDED] == QUESTIONS
    assert sum(isinstance(found, str) for _, found in RECORDED) == 5


@pytest.mark.parametrize(
    ("question", "theirs"), RECORDED, ids=[f"{n}-{one[0][2]}" for n, one in enumerate(RECORDED)]
)
def test_each_layer_adds_the_operators_and_parameters_of_caffe2(
    question: list[Any], theirs: Any
) -> None:
    if isinstance(theirs, str):
        with pytest.raises(EnforceNotMet) as error:
            answer(MODULES, *question)
        assert isinstance(error.value, getattr(builtins, theirs))
    else:
        assert answer(MODULES, *question) == theirs
