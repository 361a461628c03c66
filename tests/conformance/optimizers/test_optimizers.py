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
from bridge.caffe2 import brew, core, model_helper, optimizer, workspace
from bridge.caffe2.modeling.initializers import PseudoFP16Initializer
from bridge.caffe2.modeling.modifier_context import UseOptimizer
from tests.conformance.optimizers.scenario import QUESTIONS, answer

MODULES = SimpleNamespace(
    brew=brew, model_helper=model_helper, optimizer=optimizer, workspace=workspace
)

with gzip.open(Path(__file__).with_name("recorded.json.gz"), "rt") as _lines:
    RECORDED = [json.loads(line) for line in _lines]


def test_every_question_has_a_recorded_answer() -> None:
    assert [question for question, _ in RECORDED] == QUESTIONS
    assert sum(found is None for _, found in RECORDED) == 7


@pytest.mark.parametrize(
    ("question", "theirs"), RECORDED, ids=[f"{n}-{one[0][0]}" for n, one in enumerate(RECORDED)]
)
def test_each_optimizer_adds_the_operators_of_caffe2_and_trains_as_it(
    question: list[Any], theirs: dict[str, Any] | None
) -> None:
    if theirs is None:
        with pytest.raises(EnforceNotMet) as error:
            answer(MODULES, *question)
        assert isinstance(error.value, (AssertionError, TypeError))
        return
    ours = answer(MODULES, *question)
    assert ours["operators"] == theirs["operators"]
    assert ours["auxiliary"] == theirs["auxiliary"]
    assert ours["trained"].keys() == theirs["trained"].keys()
    for name, values in theirs["trained"].items():
        np.testing.assert_allclose(ours["trained"][name], values, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("option", ["ema_options", "pruning_options", "swa_options"])
def test_options_that_are_not_here_are_refused(option: str) -> None:
    with pytest.raises(EnforceNotMet, match=f"no option {option}"):
        optimizer.AdagradOptimizer(**{option: {"mask_tensor": 1}})


def test_an_optimizer_of_a_parameter_replaces_the_one_of_the_model() -> None:
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


def test_an_optimizer_of_a_tag_goes_before_the_default() -> None:
    model = model_helper.ModelHelper(name="tags")
    weights, others = optimizer.SgdOptimizer(0.5), optimizer.AdagradOptimizer()
    with UseOptimizer({"WEIGHT": weights, "DEFAULT": others}):
        brew.fc(model, "x", "y", 4, 2)
    found = [model.get_param_info(param).optimizer for param in model.params]  # type: ignore[union-attr]
    assert found == [weights, others]


@pytest.mark.parametrize("aggregator", ["sum", "mean"])
def test_rows_listed_twice_are_aggregated(aggregator: str) -> None:
    workspace.FeedBlob("ids", np.array([4, 0, 4]))
    workspace.FeedBlob("values", np.array([[1.0], [2.0], [5.0]], np.float32))
    net = core.Net("dedup")
    ids, values = (net.AddExternalInput(name) for name in ("ids", "values"))
    slices = net.DeduplicateGradientSlices(core.GradientSlice(ids, values), aggregator)
    workspace.RunNetOnce(net)
    found = dict(
        zip(workspace.FetchBlob(slices.indices), workspace.FetchBlob(slices.values), strict=False)
    )
    assert found == {0: 2.0, 4: 6.0 if aggregator == "sum" else 3.0}
    with pytest.raises(EnforceNotMet, match="median is not supported"):
        net.DeduplicateGradientSlices(core.GradientSlice(ids, values), "median")


def half_model() -> model_helper.ModelHelper:
    model = model_helper.ModelHelper(name="half")
    brew.fc(model, "x", "y", 4, 2, WeightInitializer=PseudoFP16Initializer)
    model.AddGradientOperators([model.net.AveragedLoss("y", "loss")])
    return model


def test_multi_precision_sgd_updates_the_float32_copy() -> None:
    model = half_model()
    optimizer.build_multi_precision_sgd(model, 0.1)
    updates = [op for op in model.net.Proto().op if "Momentum" in op.type or "Half" in op.type]
    assert [(op.type, op.output[-1]) for op in updates] == [
        ("HalfToFloat", "y_w_grad_fp32"),
        ("MomentumSGDUpdate", "y_w_fp32"),
        ("FloatToHalf", "y_w"),
    ]


@pytest.mark.parametrize("name", ["build_ftrl", "build_gftrl"])
def test_engines_that_do_not_exist_are_refused(name: str) -> None:
    with pytest.raises(EnforceNotMet, match="no engine SIMD"):
        getattr(optimizer, name)(half_model(), engine="SIMD")


def test_a_rate_can_be_set_from_outside() -> None:
    model = half_model()
    optimizer.build_adam(model, 0.1, allow_lr_injection=True)
    workspace.RunNetOnce(model.param_init_net)
    assert optimizer.get_lr_injection() == 1
    optimizer.set_lr_injection(0.25)
    assert optimizer.get_lr_injection() == 0.25


def test_an_unknown_device_is_refused() -> None:
    assert optimizer.get_param_device("w", "g", {"g": core.DeviceOption(0)}).device_type == 0
    with pytest.raises(EnforceNotMet, match="Cannot infer device for w"):
        optimizer.get_param_device("w", "g")


def test_a_script_may_write_its_own_optimizer() -> None:
    class Halving(optimizer.Optimizer):
        def _run(self, net: Any, param_init_net: Any, param_info: Any) -> None:
            net.Scale(param_info.blob, param_info.blob, scale=0.5)

    net = core.Net("halving")
    Halving()(net, core.Net("init"), "w", grad=core.BlobReference("g"))
    assert net.Proto().op[0].output == ["w"]
    with pytest.raises(NotImplementedError):
        Halving().scale_learning_rate(2.0)


def test_a_model_without_gradients_is_refused() -> None:
    model = model_helper.ModelHelper(name="untrained")
    brew.fc(model, "x", "y", 4, 2)
    with pytest.raises(EnforceNotMet, match="AddGradientOperators first"):
        optimizer.build_adam(model, 0.1)
