# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG: well-formed whatever the texts are."""

from __future__ import annotations

from xml.etree import ElementTree

from bridge.svg import Drawing, clipped, text_width


def test_any_text_is_escaped() -> None:
    drawing = Drawing("a < b & c")
    drawing.label(0, 0, 'quotes " and \x00 and <tags>')
    drawing.rect(0, 0, 1, 1, drawing.hatching("h", "#000"), tip="& more\n")
    drawing.path("M0 0L1 1", "#000", arrow=True)
    root = ElementTree.fromstring(drawing.text(10, 20))
    assert (root.get("width"), root.get("height")) == ("10", "20")
    assert 'quotes " and ? and <tags>' in [one.text for one in root.iter()]


def test_clipped_texts_fit_their_width() -> None:
    for width in range(5, 100, 7):
        assert text_width(clipped("a long text that is clipped", width, 10), 10) <= max(width, 6.1)
