# SPDX-License-Identifier: Apache-2.0
"""Nets as pictures: a box for each operator, from the inputs at the top to the outputs below.

igraph finds the places of boxes and lines (Sugiyama's layered layout), where it is installed.
Without it the boxes of a row stand in the order of those above them, and more lines cross.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from bridge.annotation import Any
from bridge.svg import Drawing, clipped

_WIDTH, _COLUMN = 216.0, 240.0  # pixels of a box, and from box to box
_ROW_GAP, _MARGIN = 34.0, 24.0
_HEAD = 46.0
_INK, _FAINT, _LINE = "#1f2933", "#5f6c7b", "#8795a5"
# Colours by a part of the type of an operator; the first that fits.
_COLOURS = (
    (("Conv",), "#dbe9ff", "#3b6fc4"),
    (("FC", "MatMul", "Linear"), "#e8def8", "#7a4fb5"),
    (("Pool", "Resize", "RoI"), "#d9f2e3", "#2f8f5b"),
    (("Relu", "Sigmoid", "Tanh", "Softmax", "Elu", "Gelu", "Swish"), "#ffe9d1", "#c9771e"),
    (("BN", "Norm", "LRN"), "#fdf3c7", "#a98400"),
    (("Loss", "Entropy", "Accuracy"), "#fbdcdc", "#c0392b"),
)
_OTHER = "#eef1f5", "#7b8794"
# Arguments that say nothing about the computation.
_SILENT = {
    "cudnn_exhaustive_search",
    "exhaustive_search",
    "use_cudnn",
    "order",
    "is_test",
    "ws_nbytes_limit",
}


class _Node:
    """A box, or a point that a line passes (`kind` is ""); `rank`: its row."""

    def __init__(self, kind: str, rank: int, title: str = "", lines: Sequence[str] = ()) -> None:
        self.kind = kind
        self.rank = rank
        self.title = title
        self.lines = list(lines)
        self.x = 0.0

    @property
    def height(self) -> float:
        """The height of the box in pixels."""
        return 0.0 if not self.kind else 24.0 + 14.0 * len(self.lines)


class _Graph:
    """The operators of a net, its inputs and outputs, as nodes in rows."""

    def __init__(self, net: Any) -> None:
        self.nodes: list[_Node] = []
        self.edges: list[tuple[int, int]] = []
        written: dict[str, int] = {}
        data = _data_inputs(net)
        for operator in net.op:
            sources = []
            weights = []
            for name in dict.fromkeys(operator.input):
                if name not in written and name in data:
                    written[name] = self._add(_Node("input", 0, name))
                if name in written:
                    sources.append(written[name])
                else:
                    weights.append(name)
            rank = 1 + max((self.nodes[i].rank for i in sources), default=-1)
            lines = [", ".join(operator.output)] if operator.output else []
            arguments = ", ".join(_arguments(operator))
            lines += [one for one in (arguments, ", ".join(weights)) if one]
            box = self._add(_Node("operator", rank, operator.type, lines))
            self.edges += [(source, box) for source in sources]
            written.update(dict.fromkeys(operator.output, box))
        last = max((node.rank for node in self.nodes), default=0)
        for name in net.external_output:
            if name in written and self.nodes[written[name]].kind == "operator":
                self.edges.append((written[name], self._add(_Node("output", last + 1, name))))
        # Inputs stand right above their first reader.
        for i, node in enumerate(self.nodes):
            if node.kind == "input":
                readers = [self.nodes[b].rank for a, b in self.edges if a == i]
                node.rank = min(readers, default=1) - 1

    def _add(self, node: _Node) -> int:
        self.nodes.append(node)
        return len(self.nodes) - 1

    def routes(self) -> list[list[int]]:
        """Return the nodes along each line; adds the points where it passes a row."""
        found = []
        for begin, end in self.edges:
            ranks = range(self.nodes[begin].rank + 1, self.nodes[end].rank)
            found.append([begin, *[self._add(_Node("", rank)) for rank in ranks], end])
        return found


def _data_inputs(net: Any) -> set[str]:
    """Return the external inputs that are data: the first input of the operator that reads them."""
    found = set()
    written: set[str] = set()
    for operator in net.op:
        if operator.input and operator.input[0] not in written:
            found.add(operator.input[0])
        written.update(operator.output)
    return found


def _arguments(operator: Any) -> list[str]:
    texts = []
    for argument in operator.arg:
        if argument.name in _SILENT:
            continue
        if argument.HasField("i"):
            texts.append(f"{argument.name}={argument.i}")
        elif argument.HasField("f"):
            texts.append(f"{argument.name}={argument.f:.4g}")
        elif argument.ints and len(argument.ints) <= 6:
            texts.append(f"{argument.name}={','.join(str(n) for n in argument.ints)}")
        elif argument.HasField("n"):
            texts.append(f"{argument.name}: {len(argument.n.op)} operators")
    return texts


def net_picture(net: Any, title: str) -> str:
    """Return a NetDef as SVG."""
    graph = _Graph(net)
    routes = graph.routes()
    _place(graph, routes)
    rows = 1 + max((node.rank for node in graph.nodes), default=0)
    heights = [0.0] * rows
    for node in graph.nodes:
        heights[node.rank] = max(heights[node.rank], node.height)
    tops = []
    at = _HEAD + _MARGIN
    for height in heights:
        tops.append(at)
        at += height + _ROW_GAP
    count = sum(node.kind == "operator" for node in graph.nodes)
    drawing = Drawing(title)
    right = max((node.x for node in graph.nodes), default=0.0) + _WIDTH / 2 + _MARGIN
    drawing.label(_MARGIN, 30, clipped(title, right - 2 * _MARGIN, 16), 16, bold=True)
    drawing.label(_MARGIN, 48, f"{count} operators", 11, fill=_FAINT)
    for route in routes:
        _draw_line(drawing, [graph.nodes[i] for i in route], tops, heights)
    for node in graph.nodes:
        if node.kind:
            # Boxes stand in the middle of their row.
            _draw_box(drawing, node, tops[node.rank] + (heights[node.rank] - node.height) / 2)
    return drawing.text(right, at - _ROW_GAP + _MARGIN)


def _place(graph: _Graph, routes: Sequence[Sequence[int]]) -> None:
    """Set the `x` of the nodes: the middle of their boxes in pixels."""
    steps = [pair for route in routes for pair in pairwise(route)]
    columns = _columns(graph, steps)
    first = min(columns, default=0.0)
    for node, x in zip(graph.nodes, columns, strict=True):
        node.x = _MARGIN + _WIDTH / 2 + (x - first) * _COLUMN


def _columns(graph: _Graph, steps: list[tuple[int, int]]) -> list[float]:
    """Return the column of each node."""
    try:
        import igraph
    except ImportError:
        return _columns_by_parents(graph, steps)
    found = igraph.Graph(len(graph.nodes), steps, directed=True).layout_sugiyama(
        layers=[node.rank for node in graph.nodes], hgap=1.0, vgap=1.0, maxiter=200
    )
    return [x for x, _ in found.coords[: len(graph.nodes)]]


def _columns_by_parents(graph: _Graph, steps: list[tuple[int, int]]) -> list[float]:
    """Return columns that put the nodes of a row in the order of the nodes above them."""
    above: dict[int, list[int]] = {}
    for begin, end in steps:
        above.setdefault(end, []).append(begin)
    columns = [0.0] * len(graph.nodes)
    rows: dict[int, list[int]] = {}
    for i, node in enumerate(graph.nodes):
        rows.setdefault(node.rank, []).append(i)
    for rank in sorted(rows):
        wanted = {}
        for i in rows[rank]:
            parents = [columns[one] for one in above.get(i, ())]
            wanted[i] = sum(parents) / len(parents) if parents else 0.0
        row = sorted(rows[rank], key=lambda i: wanted[i])
        middle = sum(wanted.values()) / len(row)
        for place, i in enumerate(row):
            columns[i] = middle + place - (len(row) - 1) / 2
    return columns


def _draw_box(drawing: Drawing, node: _Node, top: float) -> None:
    left = node.x - _WIDTH / 2
    fill, stroke = _OTHER
    if node.kind == "operator":
        for words, light, dark in _COLOURS:
            if any(word in node.title for word in words):
                fill, stroke = light, dark
                break
    else:
        fill, stroke = "#ffffff", _INK
    tip = "\n".join([node.title, *node.lines])
    round_ = 4.0 if node.kind == "operator" else node.height / 2
    drawing.rect(left, top, _WIDTH, node.height, fill, stroke, radius=round_, tip=tip)
    title = clipped(node.title, _WIDTH - 20, 12)
    drawing.label(node.x, top + 16, title, 12, anchor="middle", bold=True)
    for i, line in enumerate(node.lines):
        text = clipped(line, _WIDTH - 12, 10)
        colour = _INK if i == 0 else _FAINT
        drawing.label(node.x, top + 31 + 14 * i, text, 10, anchor="middle", mono=True, fill=colour)


def _draw_line(
    drawing: Drawing, nodes: Sequence[_Node], tops: Sequence[float], heights: Sequence[float]
) -> None:
    """Draw a line from the bottom of the first box to the top of the last."""

    def edges(node: _Node) -> tuple[float, float]:
        middle = tops[node.rank] + heights[node.rank] / 2
        half = node.height / 2 if node.kind else heights[node.rank] / 2
        return middle - half, middle + half

    x, y = nodes[0].x, edges(nodes[0])[1]
    data = f"M{x:.1f} {y:.1f}"
    for node in nodes[1:]:
        top, bottom = edges(node)
        if node.x == x:
            data += f"L{x:.1f} {top:.1f}"
        else:
            half = (top - y) / 2
            data += f"C{x:.1f} {y + half:.1f} {node.x:.1f} {top - half:.1f} {node.x:.1f} {top:.1f}"
        if not node.kind:
            data += f"L{node.x:.1f} {bottom:.1f}"
        x, y = node.x, bottom
    drawing.path(data, _LINE, arrow=True)
