# SPDX-License-Identifier: Apache-2.0
"""Node and Cluster: the names of the places where tasks run. Follows caffe2/python/task.py."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.modeling.context import DefaultManaged


class Cluster(DefaultManaged):
    """The nodes that were named inside it, in order, and their properties."""

    def __init__(self) -> None:
        self._node_kwargs: dict[str, dict[str, Any]] = {}

    def add_node(self, node: Node) -> None:
        """Add a node; one of a name that is there already replaces nothing."""
        self._node_kwargs[str(node)] = {**node.kwargs(), **self._node_kwargs.get(str(node), {})}

    def nodes(self) -> list[str]:
        """Return the names of the nodes."""
        return list(self._node_kwargs)

    def node_kwargs(self) -> dict[str, dict[str, Any]]:
        """Return the properties of each node, by its name."""
        return self._node_kwargs

    def __repr__(self) -> str:
        return f"Cluster(nodes={self.nodes()}, node_kwargs={self.node_kwargs()})"


class Node(DefaultManaged):
    """The node of the tasks that are made inside it; only its name counts."""

    def __init__(self, node: Any = "local", **kwargs: Any) -> None:
        self._name = str(node)
        self._kwargs = kwargs
        Cluster.current().add_node(self)

    def __str__(self) -> str:
        return self._name

    def __repr__(self) -> str:
        return f"Node(name={self._name}, kwargs={self._kwargs})"

    def kwargs(self) -> dict[str, Any]:
        """Return its properties."""
        return self._kwargs


class WorkspaceType:
    """Where tasks run: a child workspace that ends with the run, or the session's own."""

    PRIVATE = "private"
    GLOBAL = "global"
