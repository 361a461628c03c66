# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.net_drawer``: nets and plans as graphs, for graphviz and as JSON.

Graphs are objects of `pydot`, which is imported at first use (``pip install pydot``); pictures are
drawn by graphviz. Follows caffe2/python/net_drawer.py, PyTorch 1.8.1.

>>> import json, pathlib, tempfile
>>> from bridge.caffe2 import core, net_drawer
>>> net = core.Net("drawn")
>>> y = net.Relu("x", "y")
>>> path = pathlib.Path(tempfile.mkdtemp(), "net.json")
>>> net_drawer.GetGraphInJson(net, path)
>>> [node["label"] for node in json.loads(path.read_text())["nodes"]]
['Relu', 'x', 'y']
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.messages import caffe2_pb2

__all__ = [
    "BLOB_STYLE",
    "GetBlobNodeProducer",
    "GetGraphInJson",
    "GetGraphPngSafe",
    "GetOpNodeProducer",
    "GetOperatorMapForPlan",
    "GetPlanGraph",
    "GetPydotGraph",
    "GetPydotGraphMinimal",
    "OP_STYLE",
]

logger = logging.getLogger(__name__)

# How operators and blobs are drawn, in words of graphviz.
OP_STYLE = {"shape": "box", "color": "#0F9D58", "style": "filled", "fontcolor": "#FFFFFF"}
BLOB_STYLE = {"shape": "octagon"}

# A picture of one pixel, for graphs that cannot be drawn.
_EMPTY_PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010100000000376ef9240000000a4944415478"
    "9c636000000002000148afa4710000000049454e44ae426082"
)
_MOST_CONCURRENT_STEPS = 3


def _pydot() -> Any:
    try:
        import pydot
    except ImportError as error:
        raise EnforceNotMet(
            "Drawing a net needs pydot: `pip install pydot`; and graphviz for pictures.",
            "net_drawer",
        ) from error
    return pydot


def _operators_and_name(operators_or_net: Any, name: str | None) -> tuple[Any, str]:
    """Return the operators of a net, a NetDef or a list of OperatorDefs, and a name."""
    net = operators_or_net.Proto() if hasattr(operators_or_net, "Proto") else operators_or_net
    if isinstance(net, caffe2_pb2().NetDef):
        return net.op, net.name if name is None else name
    if net is not operators_or_net:
        raise EnforceNotMet(f"Expecting NetDef, but got {type(net)}", "net_drawer")
    return operators_or_net, "unnamed" if name is None else name


def GetOpNodeProducer(append_output: bool, **kwargs: Any) -> Callable[[Any, int], Any]:
    """Return a function of an operator and its position that creates its node.

    append_output: whether the label has the outputs, too. kwargs: attributes of the nodes.
    """

    def producer(op: Any, op_id: int) -> Any:
        kind = f"{op.name}/{op.type}" if op.name else op.type
        lines = [f"{kind} (op#{op_id})", *(op.output if append_output else ())]
        return _pydot().Node("\n".join(lines), **kwargs)

    return producer


def GetBlobNodeProducer(**kwargs: Any) -> Callable[..., Any]:
    """Return a function of a name and a label that creates a node; kwargs are its attributes."""

    def producer(node_name: str, label: str) -> Any:
        return _pydot().Node(node_name, label=label, **kwargs)

    return producer


class _Versions:
    """The versions of blobs: a blob is drawn again each time that an operator writes it."""

    def __init__(self) -> None:
        self._written: dict[str, int] = {}

    def read(self, name: str) -> str:
        """Return the name of the current version."""
        return f"{name}{self._written.setdefault(name, 0)}"

    def write(self, name: str) -> str:
        """Return the name of a new version."""
        self._written[name] = self._written.get(name, -1) + 1
        return f"{name}{self._written[name]}"


def GetPydotGraph(
    operators_or_net: Any,
    name: str | None = None,
    rankdir: str = "LR",
    op_node_producer: Any = None,
    blob_node_producer: Any = None,
) -> Any:
    """Return the graph of operators and blobs of a net, a NetDef or a list of OperatorDefs.

    rankdir: the direction that graphviz draws in. op_node_producer, blob_node_producer: see
    `GetOpNodeProducer` and `GetBlobNodeProducer`.
    """
    pydot = _pydot()
    op_node_producer = op_node_producer or GetOpNodeProducer(False, **OP_STYLE)
    blob_node_producer = blob_node_producer or GetBlobNodeProducer(**BLOB_STYLE)
    operators, name = _operators_and_name(operators_or_net, name)
    graph = pydot.Dot(name, rankdir=rankdir)
    versions = _Versions()
    nodes: dict[str, Any] = {}

    def node_of(version: str, blob: str) -> Any:
        if version not in nodes:
            nodes[version] = blob_node_producer(json.dumps(version), label=json.dumps(blob))
        graph.add_node(nodes[version])
        return nodes[version]

    for op_id, op in enumerate(operators):
        op_node = op_node_producer(op, op_id)
        graph.add_node(op_node)
        for blob in op.input:
            graph.add_edge(pydot.Edge(node_of(versions.read(blob), blob), op_node))
        for blob in op.output:
            graph.add_edge(pydot.Edge(op_node, node_of(versions.write(blob), blob)))
    return graph


def GetPydotGraphMinimal(
    operators_or_net: Any,
    name: str | None = None,
    rankdir: str = "LR",
    minimal_dependency: bool = False,
    op_node_producer: Any = None,
) -> Any:
    """Return the graph of the operators of a net, without blobs.

    minimal_dependency: leave out edges that a longer way through the graph implies.
    """
    pydot = _pydot()
    op_node_producer = op_node_producer or GetOpNodeProducer(False, **OP_STYLE)
    operators, name = _operators_and_name(operators_or_net, name)
    graph = pydot.Dot(name, rankdir=rankdir)
    producers: dict[str, int] = {}  # by blob, the position of the operator that wrote it last
    nodes: list[Any] = []
    ancestors: list[set[int]] = []
    for op_id, op in enumerate(operators):
        nodes.append(op_node_producer(op, op_id))
        graph.add_node(nodes[op_id])
        parents = [producers[blob] for blob in op.input if blob in producers]
        ancestors.append({*parents}.union(*(ancestors[parent] for parent in parents)))
        for parent in parents:
            implied = any(parent in ancestors[other] for other in parents)
            if not (minimal_dependency and implied):
                graph.add_edge(pydot.Edge(nodes[parent], nodes[op_id]))
        producers.update(dict.fromkeys(op.output, op_id))
    return graph


def GetOperatorMapForPlan(plan_def: Any) -> dict[str, Any]:
    """Return the operators of each net of a PlanDef, by the names of both."""
    return {
        f"{plan_def.name}_{net.name if net.HasField('name') else f'network_{number}'}": net.op
        for number, net in enumerate(plan_def.network)
    }


def _step_label(step: Any) -> str:
    lines = [step.name + "\n"]
    if step.report_net:
        lines.append(f"Reporter: {step.report_net}")
    if step.should_stop_blob:
        lines.append(f"Stopper: {step.should_stop_blob}")
    lines += ["Concurrent"] * step.concurrent_substeps + ["Once"] * step.only_once
    return "\n".join(lines)


def _chain(graph: Any, nodes: Iterator[Any], linked: bool = True) -> list[Any]:
    """Add nodes to a graph, each linked with the one before; return them."""
    added: list[Any] = []
    for node in nodes:
        graph.add_node(node)
        if added and linked:
            graph.add_edge(_pydot().Edge(added[-1], node))
        added.append(node)
    return added


def _draw_steps(steps: Any, graph: Any, linked: bool = True) -> list[Any]:
    """Add execution steps and their nets to a graph; return the nodes of the steps."""
    pydot = _pydot()
    nodes = _chain(
        graph, (pydot.Node(json.dumps(_step_label(step)), **OP_STYLE) for step in steps), linked
    )
    for step, node in zip(steps, nodes, strict=False):
        parallel = step.concurrent_substeps
        if step.network:
            inner = _chain(graph, (pydot.Node(json.dumps(name)) for name in step.network))
        elif step.substep:
            shown = step.substep[:_MOST_CONCURRENT_STEPS] if parallel else step.substep
            inner = _draw_steps(shown, graph, linked=not parallel)
        else:
            raise EnforceValueError(
                f"Step {step.name!r} has neither nets nor steps.", "GetPlanGraph"
            )
        hidden = len(step.substep) - _MOST_CONCURRENT_STEPS
        if parallel and hidden > 0:
            inner += _chain(graph, iter([pydot.Node(f"{hidden} more steps", **OP_STYLE)]))
        for target in inner if parallel else inner[:1]:
            graph.add_edge(pydot.Edge(node, target, arrowhead="dot", style="dashed"))
    return nodes


def GetPlanGraph(plan_def: Any, name: str | None = None, rankdir: str = "TB") -> Any:
    """Return the graph of the execution steps of a PlanDef.

    Of concurrent steps, three are drawn. Raises EnforceNotMet, also a ValueError: a step has
    neither nets nor steps.
    """
    graph = _pydot().Dot(name, rankdir=rankdir)
    _draw_steps(plan_def.execution_step, graph)
    return graph


def GetGraphInJson(operators_or_net: Any, output_filepath: str) -> None:
    """Write the graph of a net to a file, as ``{"nodes": [...], "edges": [...]}``.

    A node has an "id", a "label" and a "type", "op" or "blob"; an edge has the "source" and the
    "target", which are ids.
    """
    operators, _ = _operators_and_name(operators_or_net, None)
    versions = _Versions()
    ids: dict[str, int] = {}
    nodes: list[dict[str, Any]] = []
    edges: list[dict[str, int]] = []

    def id_of(version: str, blob: str) -> int:
        if version not in ids:
            ids[version] = len(nodes)
            nodes.append({"id": len(nodes), "label": blob, "type": "blob"})
        return ids[version]

    for op_id, op in enumerate(operators):
        this = len(nodes)
        label = f"{op.name}/{op.type}" if op.name else op.type
        nodes.append({"id": this, "label": label, "op_id": op_id, "type": "op"})
        for blob in op.input:
            edges.append({"source": id_of(versions.read(blob), blob), "target": this})
        for blob in op.output:
            edges.append({"source": this, "target": id_of(versions.write(blob), blob)})
    with open(output_filepath, "w") as file:
        json.dump({"nodes": nodes, "edges": edges}, file)


def GetGraphPngSafe(func: Callable[..., Any], *args: Any, **kwargs: Any) -> bytes:
    """Return the picture of the graph ``func(*args, **kwargs)`` as the bytes of a PNG file.

    An empty picture, and a line in the log, if that raises, whatever the reason.
    """
    try:
        drawn: bytes = func(*args, **kwargs).create_png()
    except Exception as error:  # noqa: BLE001 - a picture is not worth the end of a training
        logger.error("Failed to draw graph: %s", error)
        return _EMPTY_PNG
    return drawn
