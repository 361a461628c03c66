# SPDX-License-Identifier: Apache-2.0
"""Operator schemas, as tools read them through workspace.C."""

from __future__ import annotations

from bridge.caffe2 import workspace
from bridge.caffe2.definitions.op_schema import OpSchema


def test_counts_and_places_are_those_of_caffe2() -> None:
    conv, concat = OpSchema.get("Conv"), OpSchema.get("Concat")
    assert conv is not None and concat is not None
    assert (conv.min_input, conv.max_input, conv.min_output, conv.max_output) == (2, 3, 1, 1)
    assert (concat.min_input, concat.max_input) == (1, OpSchema.inf)
    assert conv.num_inputs_allowed(3) and not conv.num_inputs_allowed(4)
    assert conv.num_outputs_allowed(1) and conv.num_inputs_outputs_allowed(2, 1)
    assert not conv.num_inputs_outputs_allowed(2, 2)
    assert conv.CalculateOutput(3) == 1
    split = OpSchema.get("Split")
    assert split is not None and split.CalculateOutput(1) == -1
    iteration = OpSchema.get("Iter")
    assert iteration is not None and iteration.inplace_enforced(0, 0)
    assert not conv.inplace_enforced(0, 0)


def test_what_declared_functions_say() -> None:
    schema = OpSchema.get("Elu")
    assert schema is not None and not schema.private
    assert [one.name for one in schema.args] == ["alpha"] and not schema.args[0].required
    assert schema.file.endswith(".py")
    assert workspace.C.OpSchema is OpSchema
    assert OpSchema.get("Nothing") is None
