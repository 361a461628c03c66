# SPDX-License-Identifier: Apache-2.0
"""Operators that PyTorch 1.8.1 had in torch.ops._caffe2 take its parameters, in their order."""

from __future__ import annotations

import io

import pytest
import torch

from bridge.caffe2.workspace import RegisteredOperators
from bridge.integrations.torch_schemas import SCHEMAS

OPS = torch.ops._caffe2


def test_each_that_is_registered_has_the_parameters_of_old() -> None:
    registered = set(RegisteredOperators())
    for name, text in SCHEMAS.items():
        if name not in registered:
            continue
        old = torch._C.parse_schema(f"_caffe2::{text}")
        new = getattr(OPS, name).default._schema
        names = [one.name for one in old.arguments]
        assert [one.name for one in new.arguments][: len(names) + 1] == [
            *names,
            "_caffe2_preallocated_outputs",
        ]
        assert len(new.returns) == len(old.returns)


def test_arguments_are_taken_by_position() -> None:
    rois, deltas = torch.tensor([[0.0, 1.0, 1.0, 5.0, 5.0]]), torch.zeros(1, 4)
    info = torch.tensor([[10.0, 10.0, 1.0]])
    boxes, splits = OPS.BBoxTransform(
        rois, deltas, info, [1.0, 1.0, 1.0, 1.0], True, False, True, -90, 90, 1.0, False, None
    )
    torch.testing.assert_close(boxes, rois[:, 1:])
    assert splits.tolist() == [1.0]
    x = torch.tensor([[0.5, 2.5]])
    assert OPS.Bucketize(x, [1.0, 2.0]).tolist() == [[0, 2]]


def test_parameters_without_a_value_take_the_default_of_the_operator() -> None:
    x = torch.tensor([0.25, 0.75], requires_grad=True)
    y = OPS.Logit(x)
    y.sum().backward()
    torch.testing.assert_close(y.detach(), torch.logit(x.detach()))
    torch.testing.assert_close(x.grad, 1 / (x.detach() * (1 - x.detach())))


def test_outputs_that_are_not_wanted_are_empty() -> None:
    packed, mask = OPS.PackSegments(torch.tensor([1, 2]).int(), torch.ones(3, 2))
    assert packed.shape == (2, 2, 2) and mask.numel() == 0
    packed, mask = OPS.PackSegments(
        torch.tensor([1, 2]).int(), torch.ones(3, 2), return_presence_mask=True
    )
    assert mask.tolist() == [[True, False], [True, True]]


def test_operators_that_are_classes_run_on_the_tensors() -> None:
    x = torch.tensor([1.0, 2.0])
    alias = OPS.AliasWithName(x, "name")
    x[0] = 5
    assert alias.tolist() == [5.0, 2.0]
    data = torch.tensor([1.0, 2.0, 3.0, 4.0])
    ranges = torch.tensor([[[0, 2], [2, 2]]]).int()
    parts = OPS.GatherRangesToDense(data, ranges, None, [2, 2], 0, 1.0, 1.0)
    assert [one.tolist() for one in parts] == [[[1.0, 2.0]], [[3.0, 4.0]]]


@pytest.mark.filterwarnings("ignore:.*torch.jit")
def test_a_script_that_calls_them_is_saved_and_loaded() -> None:
    OPS.RoIAlign, OPS.Logit  # noqa: B018  # registers them, as the script finds them by name

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, rois: torch.Tensor) -> torch.Tensor:
            found = torch.ops._caffe2.RoIAlign(x, rois, "NCHW", 1.0, 1, 1, 2, False)
            return torch.ops._caffe2.Logit(found, 1e-6)

    x = torch.full((1, 1, 4, 4), 0.25)
    rois = torch.tensor([[0.0, 0.0, 0.0, 2.0, 2.0]])
    file = io.BytesIO()
    torch.jit.save(torch.jit.script(Model()), file)
    file.seek(0)
    found = torch.jit.load(file)(x, rois)
    torch.testing.assert_close(found.reshape(1), torch.logit(torch.tensor([0.25])))
