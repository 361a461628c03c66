# SPDX-License-Identifier: Apache-2.0
"""Recorded cases as modules, on inputs of all strides: a module gives what the net gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from bridge import c10, caffe2
from bridge.caffe2 import core, workspace

from .case import Case, groups
from .recorded import Outcome, outcomes
from .test_operators import check_same

pytestmark = pytest.mark.usefixtures("fresh_workspace")

COUNTERS = {"AtomicIter", "APMeter", "AccumulateHistogram"}  # each run counts
# Of what blobs of the workspace have that no operator reads.
OF_WORKSPACE = {"bytes: names", "queues: queue what was in the place"}


def transposed(x: torch.Tensor) -> torch.Tensor:
    """Return a copy whose first dimension is the innermost."""
    order = list(reversed(range(x.dim())))
    return torch.empty([x.shape[i] for i in order], dtype=x.dtype).permute(order).copy_(x)


def spread(x: torch.Tensor) -> torch.Tensor:
    """Return a copy whose elements are two apart."""
    return torch.empty((*x.shape, 2), dtype=x.dtype)[..., 0].copy_(x)


LAYOUTS: list[Callable[[torch.Tensor], torch.Tensor]] = [torch.Tensor.clone, transposed, spread]


def suits(case: Case, outcome: Outcome) -> bool:
    """Whether the case gives tensors for tensors."""
    return (
        outcome.error is None
        and COUNTERS.isdisjoint(step[0] for step in case.steps)
        and all(_is_array(value) for value in case.feeds.values())
        and bool(arrays(case, outcome))
    )


def _is_array(value: Any) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind in "biufO"


def arrays(case: Case, outcome: Outcome) -> list[str]:
    """Return the names of the operators' blobs that are arrays afterwards."""
    names = {name for step in case.steps for name in (*step[1], *step[2])}
    return [name for name, value in outcome.blobs.items() if name in names and _is_array(value)]


def read_first(case: Case) -> set[str]:
    """Return the names that operators read before one writes them."""
    read: set[str] = set()
    written: set[str] = set()
    for _, inputs, outputs, _ in case.steps:
        read |= set(inputs) - written
        written |= set(outputs)
    return read


def array_of(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, torch.Tensor) else value.fetch()


@pytest.mark.parametrize("group", groups())
def test_modules_agree_with_nets_on_inputs_of_all_strides(group: str) -> None:
    for case, outcome in outcomes(group):
        if suits(case, outcome) and f"{group}: {case.name}" not in OF_WORKSPACE:
            check(case, outcome)


def check(case: Case, outcome: Outcome) -> None:
    net = core.Net("net")
    for op_type, inputs, outputs, args in case.steps:
        net.Proto().op.append(core.CreateOperator(op_type, inputs, outputs, **args))
    names = arrays(case, outcome)
    read = read_first(case)
    feeds = {name: np.array(value) for name, value in case.feeds.items() if name in read}
    workspace.ResetWorkspace()
    for name in set(case.feeds) - read:
        workspace.FeedBlob(name, case.feeds[name])
    if case.name == "Alias written":  # whose input has another value afterwards
        with pytest.raises(c10.EnforceNotMet, match="share memory, and 'X' is overwritten"):
            caffe2.to_module(net, inputs=list(feeds), outputs=names)
        return
    module = caffe2.to_module(net, inputs=list(feeds), outputs=names)

    def check_results(found: Any) -> None:
        for name, value in zip(names, found if len(names) > 1 else [found], strict=True):
            check_same(array_of(value), outcome.blobs[name])

    def given(layout: Callable[[torch.Tensor], torch.Tensor]) -> dict[str, Any]:
        return {
            name: value if value.dtype == object else layout(torch.from_numpy(value))
            for name, value in feeds.items()
        }

    for layout in (*LAYOUTS, *LAYOUTS):
        check_results(module(**given(layout)))
    with torch.device("meta"):  # a default device changes nothing
        check_results(module(**given(torch.Tensor.detach)))
    needing = given(torch.Tensor.clone)
    for value in needing.values():
        if isinstance(value, torch.Tensor) and value.is_floating_point():
            value.requires_grad_()
    check_results(module(**needing))
    for name, value in feeds.items():
        workspace.FeedBlob(name, value)
    own = caffe2.to_module(net, inputs=[], outputs=names)
    for _ in range(3):  # the module's own values are not written
        check_results(own())
