# SPDX-License-Identifier: Apache-2.0
"""A tree that is converted leaves nothing behind in 10,000 calls.

Each test runs in a process of its own, whose memory no other test uses.
"""

import gc
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

import bridge
from tests.helpers import alone
from tests.helpers.isolate import isolated
from tests.helpers.leaks import leaves_nothing, needs_proc

CALLS = 10_000
# 4 KiB a leaf: one that stays in two hundred calls is seen, and so is an object in ten.
NUMEL = 1024
SLACK_BYTES = 200 * 1024


class Pair(NamedTuple):
    """A container whose fields are leaves."""

    weight: Any
    bias: Any


def check(call: Callable[[], object], what: str) -> None:
    def run(times: int = CALLS) -> None:
        for _ in range(times):
            call()

    run(500)
    gc.collect()
    gc.freeze()  # what the frameworks made is not looked through again and again
    leaves_nothing(run, f"{CALLS:,} calls of {what}", nbytes=SLACK_BYTES, blocks=CALLS // 10)


def tree_of(make: Callable[[], Any]) -> dict[str, Any]:
    tied = make()
    return {
        "layers": [OrderedDict(a=make(), b=tied), (make(), tied)],
        "pair": Pair(make(), 3),
        "name": "net",
    }


@needs_proc
@pytest.mark.parametrize("name", ["to_numpy", "to_torch", "to_jax"])
@isolated
def test_a_converted_tree_leaves_nothing(name: str) -> None:
    if name == "to_jax":
        alone.importorskip("jax")
    convert = getattr(bridge, name)
    tree = tree_of(lambda: np.zeros(NUMEL, np.float32))
    check(lambda: convert(tree), name)


@needs_proc
@isolated
def test_new_leaves_and_copies_leave_nothing() -> None:
    tree = tree_of(lambda: torch.zeros(NUMEL))
    check(lambda: bridge.to_numpy(tree, copy=True), "to_numpy with copy=True")
    check(lambda: bridge.to_numpy(tree_of(lambda: torch.zeros(NUMEL))), "to_numpy of new leaves")


@needs_proc
@isolated
def test_read_only_leaves_leave_nothing() -> None:
    frozen = np.zeros(NUMEL, np.float32)
    frozen.flags.writeable = False
    tree = tree_of(lambda: frozen[:])
    check(lambda: bridge.to_torch(tree, readonly=True), "to_torch with readonly=True")


@needs_proc
@isolated
def test_a_tree_that_is_refused_leaves_nothing() -> None:
    tree = {**tree_of(lambda: np.zeros(NUMEL, np.float32)), "words": np.array([object()])}

    def call() -> None:
        with pytest.raises(BufferError, match="words"):
            bridge.to_torch(tree)

    check(call, "to_torch of a tree that it refuses")


@needs_proc
@isolated
def test_a_tree_that_contains_itself_leaves_nothing() -> None:
    def call() -> None:
        tree = tree_of(lambda: np.zeros(NUMEL, np.float32))
        tree["self"] = tree
        with pytest.raises(ValueError, match="contains itself"):
            bridge.to_torch(tree)
        del tree["self"]  # the cycle is the caller's own

    check(call, "to_torch of a tree that contains itself")
