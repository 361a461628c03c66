# SPDX-License-Identifier: Apache-2.0
"""Softmax over words in a tree: the probability of each step of the path to a word.

The trees and the paths are messages of caffe2/proto/hsm.proto.
Follows caffe2/operators/h_softmax_op.cc, PyTorch 1.8.1.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import torch
from google.protobuf.message import DecodeError
from torch import Tensor

from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.checks import INT32, INT64, require, require_range
from bridge.caffe2.proto import hsm_pb2

_LEAST = 1e-20


def _message(kind: Any, data: bytes) -> Any:
    """Return the message of some bytes. Raises EnforceNotMet: they are damaged."""
    try:
        return kind.FromString(data)
    except DecodeError as cause:
        raise EnforceNotMet("The hierarchy is not a message of hsm.proto.") from cause


@lru_cache(4)
def _root_of(tree: bytes) -> Any:
    """Return the root of a tree, which is kept, as paths are."""
    return _message(hsm_pb2.TreeProto, tree).root_node


@lru_cache(4)
def _paths_of(hierarchy: bytes) -> dict[int, list[tuple[int, int, int]]]:
    """Return by word the index, length and target of each node of its path.

    The last four are kept, for nets that train several hierarchies by turns: reading the paths of
    10,000 words takes 52 ms, and a run on 16 rows that has them 0.5 (AMD EPYC).
    """
    found: dict[int, list[tuple[int, int, int]]] = {}
    for path in _message(hsm_pb2.HierarchyProto, hierarchy).paths:
        nodes = [(node.index, node.length, node.target) for node in path.path_nodes]
        found.setdefault(path.word_id, nodes)
    return found


def _paths(hierarchy: bytes, labels: Tensor) -> list[list[tuple[int, int, int]]]:
    """Return the path to each label."""
    known = _paths_of(hierarchy)
    words = labels.reshape(-1).tolist()
    absent = sorted({word for word in words if word not in known})
    require(not absent, "the hierarchy has a path to each label", absent)
    return [known[word] for word in words]


@operator(
    "HSoftmax",
    types={"labels": INT32},
    gradient="$Gradient i0 i1 i2 i3 o1 g0 > 0 1 2 g1",
    effects=("values",),
)
def h_softmax(
    x: Tensor, w: Tensor, b: Tensor, labels: Tensor, *, hierarchy: bytes = b""
) -> tuple[Tensor, Tensor]:
    """The loss of each row, and for each node of its path the products and their softmax in 1-D.

    X: (M, K), W: (nodes, K), b: (nodes), labels: (M). A node of a path has the rows of W from its
    index, as many as its length, and one of them is the target.
    """
    losses, kept = [], [x.new_zeros(0)]
    rows = x.flatten(1)
    for row, path in zip(rows, _paths(hierarchy, labels), strict=True):
        loss = x.new_zeros(())
        for index, length, target in path:
            part = slice(index, index + length)
            products = torch.mv(w[part], row) + b[part]
            chances = torch.softmax(products, 0)
            loss = loss - chances[target].clamp_min(_LEAST).log()
            kept += [products, chances]
        losses.append(loss)
    return torch.stack(losses), torch.cat(kept)


@operator("HSoftmaxGradient", types={"labels": INT32}, effects=("values",))
def h_softmax_gradient(
    x: Tensor,
    w: Tensor,
    b: Tensor,
    labels: Tensor,
    kept: Tensor,
    dy: Tensor,
    *,
    hierarchy: bytes = b"",
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The gradients of X, W, b and of the products and softmaxes that HSoftmax computed."""
    rows, slopes = x.flatten(1), dy.reshape(-1)
    dx, dw, db = torch.zeros_like(rows), torch.zeros_like(w), torch.zeros_like(b)
    dkept = torch.zeros_like(kept)
    at = 0
    for i, path in enumerate(_paths(hierarchy, labels)):
        for index, length, target in path:
            chances = kept[at + length : at + 2 * length]
            inner = torch.zeros_like(chances)
            inner[target] = -slopes[i] / chances[target].clamp_min(_LEAST)
            dproducts = chances * (inner - (chances * inner).sum())
            dkept[at : at + length] = dproducts
            dkept[at + length : at + 2 * length] = inner
            part = slice(index, index + length)
            dx[i] += dproducts @ w[part]
            dw[part] += torch.outer(dproducts, rows[i])
            db[part] += dproducts
            at += 2 * length
    return dx.view(x.shape), dw, db, dkept


@operator("HSoftmaxSearch", gradient="undefined", effects=("values",), devices=("cpu",))
def h_softmax_search(
    x: Tensor, w: Tensor, b: Tensor, *, tree: bytes = b"", beam: float = 0.01, topN: int = 5
) -> tuple[Any, Tensor]:
    """The `topN` nodes and words of a tree with the least losses, for each row: names, losses.

    A child is left out, with all below it, if its loss is `beam` or more above that of its parent.
    A word has its number as its name.
    """
    root = _root_of(tree)
    names: list[bytes] = []
    scores = x.new_zeros(x.shape[0], topN)
    for i, row in enumerate(x.flatten(1)):
        found: list[tuple[float, bytes]] = []
        _search(row, w, b, root, 0.0, beam, found)
        best = sorted(found, key=lambda one: one[0])[:topN]
        names += [name for _, name in best] + [b""] * (topN - len(best))
        scores[i, : len(best)] = scores.new_tensor([score for score, _ in best])
    return _strings(names).reshape(x.shape[0], topN), scores


def _search(
    row: Tensor,
    w: Tensor,
    b: Tensor,
    node: hsm_pb2.NodeProto,
    above: float,
    beam: float,
    found: list[tuple[float, bytes]],
) -> None:
    count = len(node.children) + len(node.word_ids)
    part = slice(node.offset, node.offset + count)
    chances = torch.softmax(torch.mv(w[part], row) + b[part], 0)
    losses = (above - chances.clamp_min(_LEAST).log()).tolist()
    kept = [loss < above + beam for loss in losses]
    named = [child.name.encode() for child in node.children]
    named += [b"%d" % word for word in node.word_ids]
    found += [(losses[k], named[k]) for k in range(count) if kept[k]]
    for child, loss, keeps in zip(node.children, losses, kept, strict=False):
        if keeps:
            _search(row, w, b, child, loss, beam, found)


@operator(
    "HuffmanTreeHierarchy",
    types={"labels": INT64},
    gradient="undefined",
    effects=("values",),
    devices=("cpu",),
)
def huffman_tree_hierarchy(labels: Tensor, *, num_classes: int = -1) -> Any:
    """The Huffman tree of labels, from 0 to below `num_classes`, as a TreeProto: one string."""
    require(num_classes > 0, "num_classes is positive", num_classes)
    require(labels.dim() == 1, "the labels have one dimension", labels)
    require_range("labels", labels, num_classes)
    counts = torch.bincount(labels.reshape(-1), minlength=num_classes).tolist()
    queue: list[tuple[int, int]] = []
    for label, count in enumerate(counts):
        _push(queue, (count, label))
    pairs: dict[int, tuple[int, int]] = {}
    while len(queue) > 1:
        left, right = _pop(queue), _pop(queue)
        number = num_classes + len(pairs)
        pairs[number] = left[1], right[1]
        _push(queue, (left[0] + right[0], number))
    tree = hsm_pb2.TreeProto()
    if pairs:
        _build(tree.root_node, queue[0][1], pairs, 0)
    else:
        tree.root_node.offset = 0
        tree.root_node.word_ids.append(0)
    return _strings([tree.SerializeToString()])


def _build(
    node: hsm_pb2.NodeProto, number: int, pairs: dict[int, tuple[int, int]], offset: int
) -> int:
    """Fill a node; return the offset after it and its children."""
    node.offset = offset
    offset += 2
    for child in pairs[number]:
        if child in pairs:
            offset = _build(node.children.add(), child, pairs, offset)
        else:
            node.word_ids.append(child)
    return offset + (pairs[number][1] not in pairs)  # as in Caffe2, though it needs no row


def _push(heap: list[tuple[int, int]], item: tuple[int, int]) -> None:
    """Add an item as C++'s std::push_heap does, which decides between equal counts."""
    heap.append(item)
    _rise(heap, len(heap) - 1, item)


def _rise(heap: list[tuple[int, int]], at: int, item: tuple[int, int]) -> None:
    while at and heap[(at - 1) // 2][0] > item[0]:
        heap[at] = heap[(at - 1) // 2]
        at = (at - 1) // 2
    heap[at] = item


def _pop(heap: list[tuple[int, int]]) -> tuple[int, int]:
    """Return the item of the least count as C++'s std::pop_heap does."""
    least, item = heap[0], heap.pop()
    if not heap:
        return least
    at, n = 0, len(heap)
    while at < (n - 1) // 2:
        child = 2 * at + 2
        if heap[child][0] > heap[child - 1][0]:
            child -= 1
        heap[at] = heap[child]
        at = child
    if n % 2 == 0 and at == (n - 2) // 2:
        heap[at] = heap[2 * at + 1]
        at = 2 * at + 1
    _rise(heap, at, item)
    return least


def _strings(items: list[bytes]) -> Any:
    found = np.empty(len(items), dtype=object)
    found[:] = items
    return found
