# SPDX-License-Identifier: Apache-2.0
"""Gradients of normalizations: inputs of wrong sizes, which torch's functions do not check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import workspace
from tests.helpers.operators import run_operator

pytestmark = pytest.mark.usefixtures("fresh_workspace")

X, C, N = (2, 4, 3, 3), (4,), (8,)
# fmt: off
GRADIENTS: list[tuple[str, tuple[tuple[int, ...], ...], tuple[int, ...], dict[str, Any]]] = [
    ("SpatialBNGradient", (X, C, X, C, C), (2, 3, 4), {}),
    ("InstanceNormGradient", (X, C, C, X, (2, 4), (2, 4)), (3, 4, 5), {}),
    ("GroupNormGradient", (X, X, C, C, (2, 2), (2, 2)), (0, 4, 5), {"group": 2}),
    ("LayerNormGradient", (X, X, N, N, X), (0, 2, 3), {"axis": 2}),
    ("LRNGradient", (X, X, X), (1, 2), {"size": 3, "alpha": 0.1, "beta": 0.75}),
]
# fmt: on


@pytest.mark.parametrize("sizes", [(0, 4, 3, 3), (1, 3, 1, 1), (2, 4, 300, 3), (0,), ()])
@pytest.mark.parametrize(("op_type", "shapes", "read", "arguments"), GRADIENTS)
def test_the_gradient_of_a_normalization_refuses_sizes_that_do_not_fit(
    op_type: str, shapes: Any, read: tuple[int, ...], arguments: Any, sizes: tuple[int, ...]
) -> None:
    random = np.random.RandomState(0)
    names = [f"X{i}" for i in range(len(shapes))]
    outputs = ["dX"] if op_type.startswith(("LRN", "Layer")) else ["dX", "dscale", "dbias"]

    def run_on(shapes: Any) -> None:
        for name, shape in zip(names, shapes, strict=True):
            workspace.FeedBlob(name, np.float32(random.standard_normal(shape)))
        run_operator(op_type, names, outputs, **arguments)

    run_on(shapes)
    for wrong in read:
        workspace.FeedBlob("dX", np.array([7], np.int16))
        with pytest.raises(EnforceNotMet, match=op_type):
            run_on([sizes if i == wrong else shape for i, shape in enumerate(shapes)])
        assert workspace.FetchBlob("dX").tolist() == [7]


@pytest.mark.parametrize(("order", "shape"), [("NCHW", (72,)), ("NHWC", (2, 4, 9))])
def test_a_gradient_of_other_sizes_has_the_elements_in_the_order_of_x(
    order: str, shape: tuple[int, ...]
) -> None:
    random = np.random.RandomState(0)
    x, dy = random.randn(2, *X), random.randn(*X)
    names = ["x", "s", "b", "dy", "m", "r"]
    c = x[1, :, :, 0, 0]
    shapes = [x[0], c[0], c[1], dy, c, x[0, :, :, 1, 1]]
    if order == "NHWC":
        shapes[0], shapes[3] = x[0].reshape(2, 3, 3, 4), dy.reshape(2, 3, 3, 4)
    found = []
    for changed in (shapes[3], dy.reshape(shape)):
        for name, value in zip(names, [*shapes[:3], changed, *shapes[4:]], strict=True):
            workspace.FeedBlob(name, value.astype(np.float32))
        run_operator("InstanceNormGradient", names, ["dx", "ds", "db"], order=order)
        found.append(workspace.FetchBlob("dx"))
    np.testing.assert_array_equal(*found)
