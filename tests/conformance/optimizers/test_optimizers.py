# SPDX-License-Identifier: Apache-2.0
"""Optimizers add the operators that those of the real Caffe2 add, and train to the same weights."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import brew, model_helper, optimizer, workspace
from tests.conformance.optimizers.scenario import QUESTIONS, answer

MODULES = SimpleNamespace(
    brew=brew, model_helper=model_helper, optimizer=optimizer, workspace=workspace
)

with gzip.open(Path(__file__).with_name("recorded.json.gz"), "rt") as _lines:
    RECORDED = [json.loads(line) for line in _lines]


def test_all_are_recorded() -> None:
    assert [question for question, _ in RECORDED] == QUESTIONS
    assert sum(found is None for _, found in RECORDED) == 2


@pytest.mark.parametrize(
    ("question", "theirs"), RECORDED, ids=[f"{n}-{one[0][0]}" for n, one in enumerate(RECORDED)]
)
def test_optimizer(question: list[Any], theirs: dict[str, Any] | None) -> None:
    if theirs is None:
        with pytest.raises(EnforceNotMet) as error:
            answer(MODULES, *question)
        assert isinstance(error.value, AssertionError)
        return
    ours = answer(MODULES, *question)
    assert ours["operators"] == theirs["operators"]
    assert ours["auxiliary"] == theirs["auxiliary"]
    assert ours["trained"].keys() == theirs["trained"].keys()
    for name, values in theirs["trained"].items():
        np.testing.assert_allclose(ours["trained"][name], values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("option", ["rowWise", "lars", "sparse_dedup_aggregator"])
def test_options_that_are_not_here_are_refused(option: str) -> None:
    with pytest.raises(EnforceNotMet, match=f"no option {option}"):
        optimizer.AdagradOptimizer(**{option: 1})


def test_an_optimizer_of_a_parameter_goes_before_that_of_the_model() -> None:
    model = model_helper.ModelHelper(name="own")
    brew.fc(model, "x", "y", 4, 2)
    model.AddGradientOperators([model.net.AveragedLoss("y", "loss")])
    info = model.get_param_info(model.params[0])
    assert info is not None
    info.optimizer = optimizer.AdagradOptimizer()
    optimizer.build_sgd(model, 0.1)
    types = [op.type for op in model.net.Proto().op]
    assert types.count("Adagrad") == types.count("WeightedSum") == 1
    with pytest.raises(EnforceNotMet, match="has an optimizer"):
        info.optimizer = optimizer.AdagradOptimizer()


def test_a_model_without_gradients_is_refused() -> None:
    model = model_helper.ModelHelper(name="untrained")
    brew.fc(model, "x", "y", 4, 2)
    with pytest.raises(EnforceNotMet, match="AddGradientOperators first"):
        optimizer.build_adam(model, 0.1)
