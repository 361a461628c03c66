# SPDX-License-Identifier: Apache-2.0
"""Random operations on tensors that share storages, held step by step against the plain model.

The model itself is held against every recorded step of the real `caffe2::Tensor`. What the real one
cannot do safely is left out here, and shown to be safe in test_tensor_errors.py.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bridge import c10
from tests.conformance.observer import Buffers, check_tensors
from tests.conformance.transcripts import load
from tests.conformance.world import DEFAULT_MAX_KEEP, World, set_flags

from .model import Model
from .model_state import ITEMSIZE, RefusedError, UnsafeError


@pytest.fixture(autouse=True)
def default_flags() -> Iterator[None]:
    yield
    set_flags(keep=True, max_keep=DEFAULT_MAX_KEEP)


@pytest.mark.parametrize("transcript", ["rules", "random"])
def test_the_model_is_the_real_tensor(transcript: str) -> None:
    for sequence in load(transcript):
        model = Model()
        for step in sequence.steps():
            if step.error is None:
                model.run(step.op)
            else:
                with pytest.raises(RefusedError):
                    model.run(step.op)
            where = f"{sequence.name}: {step.op}"
            assert model.observe() == step.tensors, where
            assert model.deleted == sorted(step.deleted), where
            assert model.released == sorted(step.released), where


def line(*words: st.SearchStrategy[object] | str) -> st.SearchStrategy[str]:
    """Lines of these words, each given or drawn."""
    drawn = [st.just(word) if isinstance(word, str) else word for word in words]
    return st.tuples(*drawn).map(lambda parts: " ".join(str(part) for part in parts))


NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
TYPES = st.sampled_from(["float32", "float32", "int64", "string", *(t for t in ITEMSIZE if t)])
PLAIN = TYPES.filter(lambda name: name != "string")
SIZES = st.lists(st.integers(0, 6), max_size=3).map(lambda d: ",".join(map(str, d)) or "-")
ROWS = st.integers(0, 20)
SEEDS = st.integers(0, 99)
GROWTH = st.sampled_from([0, 40, 33.3, 100, 250])

LINES = st.one_of(
    line("fill", NAMES, TYPES, SEEDS),
    line(st.sampled_from(["alias", "share", "copy", "unsafe", "clone", "swap"]), NAMES, NAMES),
    line("resize", NAMES, SIZES),
    line("mutable_data", NAMES, TYPES),
    line("extend", NAMES, st.integers(-1, 6), GROWTH),
    line("extend_to", NAMES, ROWS, GROWTH),
    line("shrink", NAMES, st.integers(0, 6)),
    line("reserve", NAMES, ROWS),
    line("free", NAMES),
    line("external", NAMES, "BLOCK", PLAIN, "0", st.sampled_from([0, 1])),
    line("reinitialize", NAMES, SIZES, TYPES),
    line("reinitialize_copy", NAMES, TYPES, NAMES),
    line(st.sampled_from(["resize_like", "copy_construct"]), NAMES, NAMES),
    line("reshape", NAMES, SIZES),
    line("raw_mutable_data", NAMES),
    line("empty", NAMES, SIZES, TYPES),
    line("new", NAMES, SIZES),
    line(st.sampled_from(["untyped", "undefined", "destroy"]), NAMES),
    line(
        "at",
        NAMES,
        st.sampled_from(["float32", "int64", "uint8"]),
        "9",
        st.integers(0, 4),
        st.integers(5, 9),
    ),
    line("flag", "keep", st.sampled_from([0, 1])),
    line("flag", "max", st.sampled_from([0, 16, DEFAULT_MAX_KEEP])),
)


def runnable(model: Model, operation: str) -> bool:
    """Whether every tensor that a line reads is there, and the real one could do it safely."""
    verb, *words = operation.split(" ")
    names = [word for word in words if word in "abcde"]
    if verb in ("swap", "destroy") and not all(name in model.tensors for name in names):
        return False
    trial = copy.deepcopy(model)
    try:
        trial.run(operation)
    except UnsafeError:
        return False
    except RefusedError:
        # Refused, with half of it done: the real one leaves a new tensor where there was none.
        return verb != "reinitialize_copy" or model.tensors.get(words[0]) is not None
    return True


@given(st.lists(LINES, min_size=8, max_size=40))
def test_random_operations_agree_with_the_model(operations: list[str]) -> None:
    model, world, buffers = Model(), World(), Buffers()
    start = ["new a 4", "fill a float32 1", "alias b a", "new c 2,2", "share c a", "unsafe d c"]
    for number, drawn in enumerate(start + operations):
        operation = drawn.replace("BLOCK", str(number))  # every block its own
        if not runnable(model, operation):
            continue
        world.deleted.clear()
        try:
            model.run(operation)
        except RefusedError:
            with pytest.raises(c10.EnforceNotMet):
                world.run(operation)
        else:
            world.run(operation)
        check_tensors(world.tensors, model.observe(), buffers)
        assert sorted(world.deleted) == model.deleted
