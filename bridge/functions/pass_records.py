# SPDX-License-Identifier: Apache-2.0
"""Records of traced forward passes for their backward passes, and the token that names each.

A graph carries arrays only. So the forward pass returns a token with its results: bytes that begin
with a number, by which the backward pass finds the `Node`. Where a framework keeps the token's
own memory, the node lives as long as that does. Where it copies the bytes, as JAX does under jit,
the node is kept until the next forward pass after it was used, and not more than `MOST` of them;
if it is gone, the function is run again with the random state that the token has, too.
"""

from __future__ import annotations

from itertools import count
from threading import Lock
from weakref import WeakValueDictionary

import numpy

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.functions.outcome import Node

# Nodes that were never used, as of forward passes whose gradient is never taken.
MOST = 1024
_NUMBER = 8
_ALIGNMENT = 64
_numbers = count(1)


class _Token(numpy.ndarray):
    """The bytes of a token, with the node."""

    node: Node


class Records:
    """The nodes of one wrapped function, by number."""

    def __init__(self) -> None:
        self._alive: WeakValueDictionary[int, _Token] = WeakValueDictionary()
        self._kept_nodes: dict[int, Node] = {}
        self._used: set[int] = set()
        self._lock = Lock()

    def token(self, node: Node) -> Any:
        """Return a token, aligned for all frameworks, by whose memory the node lives."""
        raw = numpy.zeros(_ALIGNMENT + _NUMBER, numpy.uint8)
        start = -raw.ctypes.data % _ALIGNMENT
        token = raw[start : start + _NUMBER].view(_Token)
        number = next(_numbers)
        token[:] = numpy.frombuffer(number.to_bytes(_NUMBER, "little"), numpy.uint8)
        token.node = node
        self._alive[number] = token
        return token

    def keep(self, node: Node, state: bytes) -> Any:
        """Return a token of which only the bytes will last. `state`: of random numbers."""
        number = next(_numbers)
        with self._lock:
            self._kept_nodes[number] = node
            if len(self._kept_nodes) > MOST:
                del self._kept_nodes[next(iter(self._kept_nodes))]
        return numpy.frombuffer(number.to_bytes(_NUMBER, "little") + state, numpy.uint8)

    @staticmethod
    def size(state: bytes) -> int:
        """Return the number of bytes of a token that `keep` makes."""
        return _NUMBER + len(state)

    def drop_used(self) -> None:
        """Drop the nodes that were used and are kept for their bytes' sake."""
        with self._lock:
            for number in self._used:
                self._kept_nodes.pop(number, None)
            self._used.clear()

    def find(self, token: Any) -> Node | None:
        """Return the node of a token; None: it is gone."""
        number = int.from_bytes(bytes(token[:_NUMBER]), "little")
        alive = self._alive.get(number)
        if alive is not None:
            return alive.node
        with self._lock:
            node = self._kept_nodes.get(number)
            if node is not None:
                self._used.add(number)
            return node

    @staticmethod
    def state(token: Any) -> bytes:
        """Return the random state of the forward pass."""
        return bytes(token[_NUMBER:])
