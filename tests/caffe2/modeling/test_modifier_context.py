# SPDX-License-Identifier: Apache-2.0
"""Contexts that give optimizers, regularizers and normalizers by name."""

from __future__ import annotations

from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2.modeling.modifier_context import (
    DEFAULT_MODIFIER,
    DEFAULT_OPTIM,
    ModifierContext,
    NormalizerContext,
    OptimizerContext,
    RegularizerContext,
    UseModifierBase,
    UseNormalizer,
    UseOptimizer,
    UseRegularizer,
)

KINDS = [
    ("optimizer", OptimizerContext, UseOptimizer),
    ("regularizer", RegularizerContext, UseRegularizer),
    ("normalizer", NormalizerContext, UseNormalizer),
]


@pytest.mark.parametrize(("kind", "context", "use"), KINDS)
def test_inner_blocks_hide_outer_ones(kind: str, context: Any, use: Any) -> None:
    current = context.current()
    get, has = getattr(current, f"get_{kind}"), getattr(current, f"has_{kind}")
    with use("outer"):
        assert get("DEFAULT") == "outer"
        with use({"BIAS": "inner"}):
            assert (get("DEFAULT"), get("BIAS")) == ("outer", "inner")
        assert not has("BIAS")
    with pytest.raises(EnforceNotMet, match=f"DEFAULT {kind} is not provided") as error:
        get("DEFAULT")
    assert isinstance(error.value, AssertionError)


def test_the_default_has_several_names() -> None:
    assert DEFAULT_OPTIM == DEFAULT_MODIFIER == "DEFAULT"


def test_each_push_is_undone_once() -> None:
    context = ModifierContext()
    context.push_modifiers({"a": 1})
    context.pop_modifiers()
    with pytest.raises(EnforceNotMet, match="without push_modifiers"):
        context.pop_modifiers()


def test_a_block_needs_a_context() -> None:
    with pytest.raises(NotImplementedError):
        UseModifierBase(1).__enter__()
