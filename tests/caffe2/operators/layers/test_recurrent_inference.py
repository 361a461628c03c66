# SPDX-License-Identifier: Apache-2.0
"""InferenceLSTM refuses sizes and types that do not fit each other, which torch.lstm takes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2 import core, workspace
from bridge.caffe2.operators.layers.recurrent import inference_lstm
from tests.helpers.isolate import isolated

pytestmark = pytest.mark.usefixtures("fresh_workspace")

SIZES = [(3, 2, 4), (1, 2, 5), (1, 2, 5), (20, 4), (20, 5), (20,), (20,)]


def run(sizes: list[Any], **args: Any) -> None:
    names = [f"x{i}" for i in range(len(sizes))]
    for name, shape in zip(names, sizes, strict=True):
        workspace.FeedBlob(name, np.ones(shape, np.float32))
    outputs = ["y", "hidden", "cell"]
    workspace.RunOperatorOnce(core.CreateOperator("InferenceLSTM", names, outputs, **args))


@isolated
@pytest.mark.parametrize("batch_first", [1, 2**31 - 1])
def test_a_batch_that_the_states_do_not_have_is_refused(batch_first: int) -> None:
    with pytest.raises(EnforceNotMet, match="sizes"):
        run(SIZES, batch_first=batch_first)


@isolated
@pytest.mark.parametrize("index", range(1, len(SIZES)))
def test_one_input_of_another_size_is_refused(index: int) -> None:
    sizes: list[Any] = list(SIZES)
    for other in ((), (1,), (0, 0), (1, 2, 50), (7, *SIZES[index][1:])):
        sizes[index] = other
        with pytest.raises(EnforceNotMet, match="sizes"):
            run(sizes)
    run(SIZES)
    assert workspace.FetchBlob("y").shape == (3, 2, 5)


@pytest.mark.parametrize("index", range(1, len(SIZES)))
def test_one_input_of_another_type_is_refused(index: int) -> None:
    xs = [torch.ones(shape) for shape in SIZES]
    xs[index] = xs[index].to(torch.int32)
    with pytest.raises(EnforceNotMet, match="one element type"):  # as of a module, without blobs
        inference_lstm(*xs)
