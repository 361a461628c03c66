# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.hsm_util``: trees of words, for the operator HSoftmax.

Follows caffe2/python/hsm_util.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import hsm_util
>>> from bridge.caffe2.proto import hsm_pb2
>>> left = hsm_util.create_node_with_words([0, 1, 2], "left")
>>> root = hsm_util.create_node_with_nodes([left, hsm_util.create_node_with_words([3])])
>>> hierarchy = hsm_util.create_hierarchy(hsm_pb2.TreeProto(root_node=root))
>>> hierarchy.size, [path.word_id for path in hierarchy.paths]
(6, [0, 1, 2, 3])
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.caffe2.proto import hsm_pb2

__all__ = ["create_hierarchy", "create_node_with_nodes", "create_node_with_words"]


def create_node_with_words(words: Iterable[int], name: str = "node") -> Any:
    """Return a NodeProto whose leaves are words, by their numbers."""
    return hsm_pb2.NodeProto(name=name, word_ids=words)


def create_node_with_nodes(nodes: Iterable[Any], name: str = "node") -> Any:
    """Return a NodeProto with copies of nodes."""
    return hsm_pb2.NodeProto(name=name, children=nodes)


def create_hierarchy(tree_proto: Any) -> Any:
    """Return the HierarchyProto of a TreeProto: the path to each word.

    Sets the offset of each node in the tree: its children and words have the rows of the weight
    from there on.
    """
    hierarchy = hsm_pb2.HierarchyProto(size=0)
    _add_paths(tree_proto.root_node, [], hierarchy)
    return hierarchy


def _add_paths(node: Any, above: list[Any], hierarchy: Any) -> None:
    """Add the paths to the words below a node; `above` is the path to the node."""
    node.offset = hierarchy.size
    length = len(node.children) + len(node.word_ids)
    hierarchy.size += length

    def path_to(target: int) -> list[Any]:
        step = hsm_pb2.PathNodeProto(index=node.offset, length=length, target=target)
        return [*above, step]

    for target, child in enumerate(node.children):
        _add_paths(child, path_to(target), hierarchy)
    for target, word in enumerate(node.word_ids, len(node.children)):
        hierarchy.paths.add(word_id=word, path_nodes=path_to(target))
