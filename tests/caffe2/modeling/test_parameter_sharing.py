# SPDX-License-Identifier: Apache-2.0
"""Parameters shared between name scopes; expected names are those of the real Caffe2."""

from __future__ import annotations

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core
from bridge.caffe2.modeling.parameter_sharing import ParameterSharing, parameter_sharing_context


@pytest.mark.parametrize(
    ("shared", "scope", "name"),
    [
        ({}, "b", "b/w"),
        ({"b": "a"}, "b", "a/w"),
        ({"b": "a/"}, "b", "a/w"),
        ({"b": "a"}, "c", "c/w"),
        ({"b": "a"}, "b/c", "a/c/w"),
        ({"a": ""}, "a", "w"),
        ({"b/c": "b", "b": "a"}, "b/c", "a/w"),
        ({"b/c": "b", "b": "a"}, "b/d", "a/d/w"),
        ({"b": "a", "bb": "c"}, "bb", "c/w"),
    ],
)
def test_shared_scopes_give_shared_names(shared: dict[str, str], scope: str, name: str) -> None:
    with ParameterSharing(shared), core.NameScope(scope):
        assert parameter_sharing_context.get_parameter_name("w") == name
    with core.NameScope(scope):
        assert parameter_sharing_context.get_parameter_name("w") == f"{scope}/w"


def test_scopes_are_relative_to_the_current_one() -> None:
    with core.NameScope("outer"), ParameterSharing({"b": "a"}), core.NameScope("b"):
        assert parameter_sharing_context.get_parameter_name("w") == "outer/a/w"
    with core.NameScope("b"), ParameterSharing({"c": "d"}), core.NameScope("c"):
        assert parameter_sharing_context.get_parameter_name("w") == "b/d/w"


def test_inner_blocks_go_before() -> None:
    with ParameterSharing({"b": "a"}), ParameterSharing({"b": "c"}), core.NameScope("b"):
        assert parameter_sharing_context.get_parameter_name("w") == "c/w"


def test_wrong_sharing_is_refused() -> None:
    with pytest.raises(EnforceNotMet, match="a is prefix of a/b"), ParameterSharing({"a": "a/b"}):
        pass
    with pytest.raises(EnforceNotMet, match="Expected a dict"), ParameterSharing(["a"]):  # type: ignore[arg-type]
        pass
    with pytest.raises(EnforceNotMet, match="without add_scope_overrides"):
        parameter_sharing_context.pop()
