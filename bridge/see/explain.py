# SPDX-License-Identifier: Apache-2.0
"""The result of `bridge.explain`: who owns the memory of a tensor, or of several, and its picture.

The picture has buffers as bars to scale, and who sees which bytes of them.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.see.find_memory import find_memory
from bridge.see.sharers import sharers
from bridge.see.tensor_memory import Block, TensorMemory, byte_range, byte_runs
from bridge.svg import Drawing, clipped

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Buffer = tuple[str, int, int]

_FIELDS = (
    "address", "nbytes", "device", "dtype", "sizes", "strides", "readonly", "owner", "shared_by",
    "note", "chain",
)  # fmt: skip


class Explanation:
    """The memory of a tensor and its owner, at the time of the call of `bridge.explain`.

    Attributes that are unknown are None. address: an int, of the first element. nbytes: the size of
    all elements in bytes. device, dtype: their names. sizes, strides: in elements; a stride that is
    not a whole number of elements is a float. readonly: a bool. owner: the object that keeps the
    memory alive. shared_by: a text for each other user of the same buffer. note: why an attribute
    is unknown. chain: a dict for each object from the tensor to the owner, with its ``"kind"``.
    """

    __slots__ = (*_FIELDS, "_blocks", "_buffer")

    address: int | None
    nbytes: int | None
    device: str | None
    dtype: str | None
    sizes: list[int] | None
    strides: list[int | float] | None
    readonly: bool | None
    owner: str | None
    shared_by: list[str]
    note: str | None
    chain: list[dict[str, Any]]

    def __init__(self, memory: TensorMemory, shared_by: list[str]) -> None:
        self.address, self.nbytes = memory.address, memory.nbytes
        self.device, self.dtype, self.sizes = memory.device, memory.dtype, memory.sizes
        self.strides = None
        if memory.strides is not None:
            self.strides = [_in_elements(step, memory.itemsize) for step in memory.strides]
        self.readonly, self.owner, self.shared_by = memory.readonly, memory.owner, shared_by
        self.note = memory.note
        self.chain = [dict(link) for link in memory.chain]
        self._blocks: list[Block] = list(memory.blocks)
        self._buffer = memory.buffer

    def svg(self) -> str:
        """Return a picture as SVG: the buffer as a bar, and under it the bytes of the tensor.

        >>> import bridge
        >>> bridge.explain(bridge.at.zeros(2, 3)).svg()[:4]
        '<svg'
        """
        return _Picture([self]).text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes as a new dict of plain Python objects, fit for JSON."""
        from copy import deepcopy

        return {name: deepcopy(getattr(self, name)) for name in _FIELDS}

    def _rows(self) -> list[tuple[str, str]]:
        writing = {None: "unknown", True: "read-only", False: "writable"}[self.readonly]
        where = "none" if self.address is None else f"{self.address:#x}"
        rows = [
            ("address", where),
            ("bytes", "unknown" if self.nbytes is None else str(self.nbytes)),
            ("device", str(self.device)),
            ("type", str(self.dtype)),
            ("sizes", str(self.sizes)),
            ("strides", f"{self.strides} (elements)"),
            ("writing", writing),
            ("owner", str(self.owner)),
        ]
        if self.note is not None:
            rows.append(("note", self.note))
        rows += [("chain" if not i else "", _shown(link)) for i, link in enumerate(self.chain)]
        others = self.shared_by or ["no other known user"]
        rows += [("shared by" if not i else "", other) for i, other in enumerate(others)]
        return rows

    def __str__(self) -> str:
        head = " -> ".join(str(link["kind"]) for link in self.chain)
        return "\n".join([head, *(f"  {name:<9}  {value}" for name, value in self._rows())])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        from html import escape

        rows = "".join(
            f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
            for name, value in self._rows()
        )
        head = " &rarr; ".join(escape(str(link["kind"])) for link in self.chain)
        return f"<table><caption>{head}</caption><tbody>{rows}</tbody></table>{self.svg()}"


def _in_elements(step: int, itemsize: int) -> int | float:
    whole, rest = divmod(step, itemsize or 1)
    return whole if rest == 0 else step / itemsize


def _shown(link: dict[str, Any]) -> str:
    """Return a link as one line: its kind, then its other items."""
    facts = []
    for name, value in link.items():
        if name == "kind" or value is None:
            continue
        if name == "text":
            facts.append(str(value))
        elif name == "address":
            facts.append(f"address {value:#x}")
        else:
            facts.append(f"{name} {value}")
    return f"{link['kind']}: {', '.join(facts)}" if facts else str(link["kind"])


class Explanations:
    """The Explanation of each of several tensors, in their order, and a picture of all of them.

    >>> import bridge
    >>> x = bridge.at.zeros(2, 3)
    >>> found = bridge.explain(x, x[1])
    >>> len(found), found[1].sizes, found.svg()[:4]
    (2, [3], '<svg')
    """

    __slots__ = ("_found",)

    def __init__(self, found: list[Explanation]) -> None:
        self._found = found

    def __len__(self) -> int:
        return len(self._found)

    def __iter__(self) -> Iterator[Explanation]:
        return iter(self._found)

    def __getitem__(self, index: int) -> Explanation:
        return self._found[index]

    def to_dict(self) -> dict[str, Any]:
        """Return ``{"tensors": [...]}``, with the result of `Explanation.to_dict` for each."""
        return {"tensors": [one.to_dict() for one in self._found]}

    def svg(self) -> str:
        """Return a picture as SVG: buffers as bars, and under each who sees which of its bytes."""
        return _Picture(self._found).text()

    def _repr_svg_(self) -> str:
        return self.svg()

    def _repr_html_(self) -> str:
        return self.svg()

    def __str__(self) -> str:
        return "\n\n".join(str(one) for one in self._found)

    def __repr__(self) -> str:
        return str(self)


def explain(tensors: tuple[Any, ...]) -> Explanation | Explanations:
    """Return the Explanation of one tensor, or the Explanations of several; see bridge.explain."""
    if not tensors:
        raise TypeError("explain is for tensors, one or more.")
    if len(tensors) == 1:
        return _explained(tensors[0])
    return Explanations([_explained(x) for x in tensors])


def _explained(x: Any) -> Explanation:
    try:
        memory = find_memory(x)
    except TypeError as error:
        raise TypeError(f"explain is for tensors. {error}") from error
    return Explanation(memory, sharers(x, memory))


# The picture.

_MARGIN, _LABELS, _BAR = 20.0, 250.0, 620.0  # pixels: around, of the texts, of the longest bar
_LEAST = 6.0  # pixels of the shortest bar
_BAR_HEIGHT, _ROW = 22.0, 36.0
_INK, _FAINT, _RULE = "#1f2933", "#5f6c7b", "#cbd2d9"
_COLOURS = ("#3b6fc4", "#c9771e", "#2f8f5b", "#7a4fb5", "#b0413e", "#0f7f8c")
_MAX_RUNS = 400  # of one tensor that are drawn one by one


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
