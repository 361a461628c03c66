# SPDX-License-Identifier: Apache-2.0
"""The result of `bridge.explain`: who owns the memory of a tensor, or of several."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.see.find_memory import find_memory
from bridge.see.sharers import sharers

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from bridge.see.tensor_memory import Block, TensorMemory

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
        from bridge.see.memory_picture import memory_picture

        return memory_picture([self])

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
        from bridge.see.memory_picture import memory_picture

        return memory_picture(self._found)

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
