# SPDX-License-Identifier: Apache-2.0
"""The picture of `bridge.explain`: buffers as bars to scale, and who sees which bytes of them."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.see.tensor_memory import byte_range, byte_runs
from bridge.svg import Drawing, clipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Protocol

    from bridge.see.tensor_memory import Block

    Buffer = tuple[str, int, int]

    class Explanation(Protocol):
        """The parts of a tensor that are drawn; see bridge.see.explain."""

        device: str | None
        dtype: str | None
        sizes: list[int] | None
        strides: list[int | float] | None
        readonly: bool | None
        owner: str | None
        shared_by: list[str]
        note: str | None
        chain: list[dict[str, Any]]
        _blocks: list[Block]
        _buffer: Buffer | None


_MARGIN, _LABELS, _BAR = 20.0, 250.0, 620.0  # pixels: around, of the texts, of the longest bar
_LEAST = 6.0  # pixels of the shortest bar
_BAR_HEIGHT, _ROW = 22.0, 36.0
_INK, _FAINT, _RULE = "#1f2933", "#5f6c7b", "#cbd2d9"
_COLOURS = ("#3b6fc4", "#c9771e", "#2f8f5b", "#7a4fb5", "#b0413e", "#0f7f8c")
_MAX_RUNS = 400  # of one tensor that are drawn one by one


def memory_picture(found: Sequence[Explanation]) -> str:
    """Return the memory of tensors as SVG."""
    return _Picture(found).text()


def _buffers(found: Sequence[Explanation]) -> list[Buffer]:
    """Return the buffers of all tensors, those that overlap as one, in the order of the tensors."""
    merged: list[Buffer] = []
    for one in found:
        for buffer in _all_buffers(one):
            space, begin, end = buffer
            apart = []
            place = len(merged)
            for i, other in enumerate(merged):
                if other[0] == space and max(begin, other[1]) < min(end, other[2]):
                    begin, end = min(begin, other[1]), max(end, other[2])
                    place = min(place, i)
                else:
                    apart.append(other)
            apart.insert(place, (space, begin, end))
            merged = apart
    return merged


def _all_buffers(one: Explanation) -> list[Buffer]:
    found = [] if one._buffer is None else [one._buffer]
    for block in one._blocks:
        begin, end = byte_range(block)
        if begin < end and not any(
            space == block.space and low <= begin and end <= high for space, low, high in found
        ):
            found.append((block.space, begin, end))
    return [buffer for buffer in found if buffer[1] < buffer[2]]


def _is_in(one: Explanation, buffer: Buffer) -> bool:
    space, begin, end = buffer
    return any(
        block.space == space and begin <= low and high <= end and low < high
        for block in one._blocks
        for low, high in [byte_range(block)]
    )


class _Picture:
    """The drawing, and how far it has come: `y` is the height below what is drawn."""

    def __init__(self, found: Sequence[Explanation]) -> None:
        self.drawing = Drawing("Who sees which bytes")
        self.readonly = self.drawing.hatching("readonly", "#ffffff")
        self.fixed = self.drawing.hatching("fixed", "#9aa5b1")
        self.found = found
        self.left, self.y = _MARGIN + _LABELS, _MARGIN
        self.scale = 1.0  # pixels for a byte

    def text(self) -> str:
        """Draw all, and return it as SVG."""
        buffers = _buffers(self.found)
        self.scale = _BAR / max((end - begin for _, begin, end in buffers), default=1)
        for buffer in buffers:
            self.draw_buffer(buffer)
        for i, one in enumerate(self.found):
            if not any(_is_in(one, buffer) for buffer in buffers):
                self.label(one, i)
                note = clipped(one.note or "It has no elements.", _BAR, 11)
                self.drawing.label(self.left, self.y + 20, note, 11, fill=_FAINT)
                self.y += _ROW
        return self.drawing.text(self.left + _BAR + _MARGIN, self.y + _MARGIN / 2)

    def draw_buffer(self, buffer: Buffer) -> None:
        """Draw a buffer and its tensors."""
        drawing, left, y = self.drawing, self.left, self.y
        space, begin, end = buffer
        here = [(i, one) for i, one in enumerate(self.found) if _is_in(one, buffer)]
        first = here[0][1] if here else self.found[0]
        readonly = bool(here) and all(one.readonly for _, one in here)
        width = max(_LEAST, (end - begin) * self.scale)
        kind, _, more = (first.owner or "unknown owner").partition(": ")
        where = f"{first.device or space}, {'read-only' if readonly else 'writable'}"
        drawing.label(_MARGIN, y + 11, clipped(kind, _LABELS - 12, 12), 12, bold=True)
        for line, text in enumerate(one for one in (more, where) if one):
            shown = clipped(text, _LABELS - 12, 10)
            drawing.label(_MARGIN, y + 25 + 13 * line, shown, 10, fill=_FAINT)
        tip = f"{first.owner}\n{end - begin} bytes at {begin:#x}"
        drawing.rect(left, y, width, _BAR_HEIGHT, "#e4e7eb", "#7b8794", tip=tip)
        if readonly:
            drawing.rect(left, y, width, _BAR_HEIGHT, self.fixed, tip=f"{tip}\nread-only")
        size, below = f"{end - begin} bytes", y + _BAR_HEIGHT + 13
        drawing.label(left, below, f"{begin:#x}", 10, mono=True, fill=_FAINT)
        if width > 260:
            drawing.label(left + width, below, size, 10, mono=True, fill=_FAINT, anchor="end")
        else:
            drawing.label(left + width + 8, y + 15, size, 10, mono=True, fill=_FAINT)
        self.y += _BAR_HEIGHT + 24
        for i, one in here:
            self.label(one, i)
            drawing.rect(left, self.y + 9, width, 16, "#f5f7fa")
            for block in one._blocks:
                if block.space == space:
                    self.draw_block(one, block, i, begin)
            self.y += _ROW
        if len(here) == 1:
            for text in here[0][1].shared_by:
                shown = clipped(f"shared by {text}", _BAR, 11)
                drawing.label(left, self.y + 12, shown, 11, fill=_FAINT)
                self.y += 17
        drawing.path(f"M{_MARGIN:.1f} {self.y + 8:.1f}H{left + _BAR:.1f}", _RULE, 1)
        self.y += 24

    def draw_block(self, one: Explanation, block: Block, i: int, start: int) -> None:
        """Draw the bytes of a tensor: each run of them, or, of very many, a bar of their range."""
        drawing, y, colour = self.drawing, self.y + 9, _COLOURS[i % len(_COLOURS)]
        low, high = byte_range(block)
        runs = byte_runs(block, _MAX_RUNS)
        tip = f"bytes {low - start} to {high - start} of the buffer"
        if runs is None:
            x = self.left + (low - start) * self.scale
            width = max(1.5, (high - low) * self.scale)
            drawing.rect(x, y, width, 16, "#ffffff", colour, dashed=True, tip=f"{tip}, with gaps")
            drawing.label(x + width / 2, y + 12, "with gaps", 10, anchor="middle", fill=colour)
            return
        for begin, end in runs:
            x = self.left + (begin - start) * self.scale
            width = max(1.0, (end - begin) * self.scale - (0.6 if len(runs) > 1 else 0))
            drawing.rect(x, y, width, 16, colour, tip=tip)
            if one.readonly:
                drawing.rect(x, y, width, 16, self.readonly, tip=f"{tip}, read-only")

    def label(self, one: Explanation, i: int) -> None:
        """Write the description of a tensor left of its bytes."""
        drawing, left, y = self.drawing, _MARGIN + 14, self.y
        kind = str(one.chain[0]["kind"]) if one.chain else "tensor"
        drawing.rect(_MARGIN, y + 6, 8, 8, _COLOURS[i % len(_COLOURS)])
        drawing.label(left, y + 14, clipped(kind, _LABELS - 24, 12), 12, fill=_INK, bold=True)
        sizes = "" if one.sizes is None else f" {one.sizes}"
        strides = f" / {one.strides}" if one.strides else ""
        text = clipped(f"{one.dtype or 'no type'}{sizes}{strides}", _LABELS - 20, 10)
        drawing.label(left, y + 28, text, 10, mono=True, fill=_FAINT)
