# SPDX-License-Identifier: Apache-2.0
"""Errors, doctor and docs/versions.md say alike what an older torch lacks."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

import bridge
from bridge import at
from bridge.exchange.torch_versions import SINCE, lacking

DOCS = Path(__file__).parents[2] / "docs/versions.md"


def test_a_release_lacks_what_came_later() -> None:
    assert set(lacking("2.6.0+cu124")) == set(SINCE)
    assert "float8_e8m0fnu" not in lacking("2.7.1")
    assert lacking("2.7.1")["float4_e2m1fn_x2"] == "2.8"
    assert lacking("2.14.0a0+git1234") == lacking("3.0") == {}
    assert lacking("a build without a number") == {}


def test_the_page_of_versions_lists_what_is_lacking() -> None:
    rows = dict(re.findall(r"^\| (\D.*) \| torch (\d+\.\d+)", DOCS.read_text(), re.MULTILINE))
    plain = {what.replace("`", ""): f"{a}.{b}" for what, (a, b) in SINCE.items()}
    assert {what.replace("`", ""): since for what, since in rows.items()} == plain


@pytest.mark.parametrize("name", ["float8_e8m0fnu", "float4_e2m1fn_x2"])
def test_a_type_that_torch_lacks_is_refused_with_the_release_that_has_it(name: str) -> None:
    x = at.zeros(4, dtype=name)
    if since := lacking(torch.__version__).get(name):
        with pytest.raises(BufferError, match=f"has no such type; torch {since} has it"):
            bridge.to_torch(x)
    else:
        assert bridge.to_torch(x).dtype is getattr(torch, name)
