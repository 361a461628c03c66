# SPDX-License-Identifier: Apache-2.0
"""Pictures as SVG: shapes and texts, one after the other, in pixels from the upper left corner."""

from __future__ import annotations

SANS = "system-ui, 'DejaVu Sans', Helvetica, Arial, sans-serif"
MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_RATIO = 0.61  # width of a letter of a monospaced font over its size


def text_width(text: str, size: float) -> float:
    """Return the width of a monospaced text in pixels.

    >>> from bridge.svg import text_width
    >>> text_width("conv1", 10)
    30.5
    """
    return len(text) * size * _RATIO


def clipped(text: str, width: float, size: float) -> str:
    """Return a text that fits into `width` pixels, its end replaced by … if it does not.

    >>> from bridge.svg import clipped
    >>> clipped("conv1_weights", 50, 10)
    'conv1_w…'
    """
    room = max(1, int(width / (size * _RATIO)))
    return text if len(text) <= room else text[: room - 1] + "…"


def _escaped(text: str) -> str:
    from html import escape

    # Characters that XML does not allow, even escaped.
    return escape("".join(one if one >= " " else "?" for one in text))


class Drawing:
    """A picture of `width` times `height` pixels on white; `text()` returns the SVG."""

    def __init__(self, title: str) -> None:
        self._title = title
        self._parts: list[str] = []
        self._definitions: list[str] = []

    def rect(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        fill: str,
        stroke: str = "none",
        *,
        radius: float = 0,
        line: float = 1,
        dashed: bool = False,
        tip: str = "",
    ) -> None:
        """Draw a rectangle; `tip` is shown where the pointer rests on it."""
        more = f' rx="{radius:g}"' if radius else ""
        more += ' stroke-dasharray="4 3"' if dashed else ""
        inner = f"<title>{_escaped(tip)}</title>" if tip else ""
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}" '
            f'fill="{fill}" stroke="{stroke}" stroke-width="{line:g}"{more}>{inner}</rect>'
        )

    def label(
        self,
        x: float,
        y: float,
        text: str,
        size: float = 11,
        *,
        fill: str = "#1f2933",
        anchor: str = "start",
        bold: bool = False,
        mono: bool = False,
    ) -> None:
        """Write a text on the line `y`; `anchor`: its point at `x`, "start", "middle" or "end"."""
        weight = ' font-weight="600"' if bold else ""
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size:g}" fill="{fill}" '
            f'text-anchor="{anchor}" font-family="{MONO if mono else SANS}"{weight}>'
            f"{_escaped(text)}</text>"
        )

    def path(self, data: str, stroke: str, width: float = 1.2, *, arrow: bool = False) -> None:
        """Draw a line along the path `data`, with an arrow at its end."""
        more = ' marker-end="url(#arrow)"' if arrow else ""
        if arrow and not self._definitions:
            self._definitions.append(
                '<marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
                'markerHeight="7" orient="auto-start-reverse"><path d="M0 0L8 4L0 8z" '
                f'fill="{stroke}"/></marker>'
            )
        self._parts.append(
            f'<path d="{data}" fill="none" stroke="{stroke}" stroke-width="{width:g}"{more}/>'
        )

    def hatching(self, name: str, stroke: str) -> str:
        """Return the fill of diagonal lines."""
        self._definitions.append(
            f'<pattern id="{name}" width="6" height="6" patternUnits="userSpaceOnUse" '
            f'patternTransform="rotate(45)"><line x1="0" y1="0" x2="0" y2="6" stroke="{stroke}" '
            'stroke-width="2.4"/></pattern>'
        )
        return f"url(#{name})"

    def text(self, width: float, height: float) -> str:
        """Return the picture as SVG, of `width` times `height` pixels."""
        definitions = f"<defs>{''.join(self._definitions)}</defs>\n" if self._definitions else ""
        body = "\n".join(self._parts)
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" role="img">\n'
            f"<title>{_escaped(self._title)}</title>\n{definitions}"
            f'<rect width="100%" height="100%" fill="#ffffff"/>\n{body}\n</svg>\n'
        )
