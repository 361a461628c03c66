# SPDX-License-Identifier: Apache-2.0
"""The picture of explain: bars to scale, the bytes of each tensor, read-only memory hatched."""

from __future__ import annotations

from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import bridge
from bridge import at

SVG = "{http://www.w3.org/2000/svg}"


def drawn(*tensors: Any) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the rectangles of the picture, without the background, and the texts."""
    root = ElementTree.fromstring(bridge.explain(*tensors).svg())
    rects = [
        {
            "fill": one.get("fill"),
            **{key: float(one.get(key, "0")) for key in ("x", "y", "width", "height")},
        }
        for one in root.findall(f"{SVG}rect")[1:]
    ]
    return rects, [str(one.text) for one in root.iter(f"{SVG}text")]


def bars(rects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [one for one in rects if one["fill"] == "#e4e7eb"]


def test_one_tensor_is_drawn_on_a_bar_of_its_memory() -> None:
    x = at.zeros(2, 3)
    found = bridge.explain(x)
    rects, texts = drawn(x)
    (bar,) = bars(rects)
    assert "24 bytes" in texts
    assert "at.Tensor" in texts
    assert any("the allocator" in text for text in texts)
    colour = next(one for one in rects if one["fill"] == "#3b6fc4" and one["height"] == 16)
    assert (colour["x"], colour["width"]) == (bar["x"], bar["width"])
    assert found._repr_svg_() == found.svg()
    assert found.svg() in found._repr_html_()


def test_several_share_one_bar() -> None:
    t = torch.arange(24.0).reshape(4, 6)
    x = bridge.from_dlpack(t)
    other = np.zeros(12, np.float32)
    rects, texts = drawn(x, t[:, 1:3], other)
    first, second = bars(rects)
    assert second["width"] == pytest.approx(first["width"] / 2, abs=0.1)
    runs = [one for one in rects if one["fill"] == "#c9771e" and one["height"] == 16]
    assert len(runs) == 4
    step = first["width"] / 24
    assert [one["x"] - first["x"] for one in runs] == pytest.approx(
        [(1 + 6 * i) * step for i in range(4)], abs=0.1
    )
    assert {"at.Tensor", "torch.Tensor", "numpy.ndarray"} <= set(texts)


def test_read_only_memory_is_hatched() -> None:
    frozen = np.arange(3.0)
    assert not [one for one in drawn(frozen)[0] if "url" in str(one["fill"])]
    frozen.flags.writeable = False
    fills = [one["fill"] for one in drawn(frozen)[0]]
    assert "url(#fixed)" in fills
    assert "url(#readonly)" in fills


def test_tensors_without_memory_and_with_gaps_are_drawn() -> None:
    _, texts = drawn(torch.zeros(3, device="meta"), np.zeros(0), at.Tensor())
    assert "A meta tensor has sizes and no data." in texts
    assert "It has no elements." in texts
    _, texts = drawn(np.zeros((1000, 1000))[:, ::2])
    assert "with gaps" in texts
    drawn(torch.eye(3).to_sparse())


def test_several_tensors_are_explained_in_one_object() -> None:
    x = at.zeros(4)
    found = bridge.explain(x, x[2:])
    assert len(found) == 2
    assert [one.sizes for one in found] == [[4], [2]]
    assert found[1].sizes == [2]
    assert [one["sizes"] for one in found.to_dict()["tensors"]] == [[4], [2]]
    assert str(found).count("TensorImpl -> ") == repr(found).count("TensorImpl -> ") == 2
    assert found._repr_html_() == found._repr_svg_() == found.svg()
    with pytest.raises(TypeError, match="one or more"):
        bridge.explain()  # type: ignore[call-overload]
    with pytest.raises(TypeError, match="explain is for tensors"):
        bridge.explain(x, "text")
