# SPDX-License-Identifier: Apache-2.0
"""Blocks of a NetBuilder that are steps: loops, guards and conditions by stop blobs.

Follows caffe2/python/net_builder.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.task.builder import NetBuilder, require


def _here() -> Any:
    """Return the net that operators are added to."""
    return NetBuilder.current().current_net()


class _Once(NetBuilder):
    """A block that runs once, even if a stop blob makes a loop of its step."""

    def _end(self) -> None:
        if self._stop_blob is not None:
            self.stop_if(self.current_net().Const(True))


class StopGuard(_Once):
    """A block that runs once, or until it stops, and says which."""

    def __init__(self, has_stopped_blob: Any = None, name: str | None = None) -> None:
        super().__init__(name)
        self._stopped = has_stopped_blob
        self._ran = False

    def __enter__(self) -> Any:
        entered = super().__enter__()
        self._stopped = _here().Const(True, blob_out=self._stopped)
        return entered

    def _end(self) -> None:
        self._ran = True
        self.current_net().Const(False, blob_out=self._stopped)
        super()._end()

    def has_stopped(self) -> Any:
        """Return the blob that is True after the block if it stopped before its end."""
        require(self._ran, "Context not used yet.", "stop_guard")
        return self._stopped


class Loop(NetBuilder):
    """A block that runs `iters` times, a number or a blob; None: until it stops."""

    def __init__(self, iters: Any = None, name: str | None = None) -> None:
        super().__init__(name, _stop_blob_required=True)
        self._count = iters
        if iters is not None:
            net = _here()
            self._one, self._iter = net.Const(1), net.Const(0)
            self._count = iters if isinstance(iters, BlobReference) else net.Const(iters)

    def iter(self) -> Any:
        """Return the blob with the number of the iteration, from 0."""
        require(
            self._count is not None,
            "This loop does not have a number of iterations.",
            "loop",
        )
        return self._iter

    def __enter__(self) -> Any:
        entered = super().__enter__()
        if self._count is not None:
            self.stop_if(_here().GE([self._iter, self._count]))
        return entered

    def _end(self) -> None:
        if self._count is not None:
            self.current_net().Add([self._iter, self._one], [self._iter])


class IfBlock(_Once):
    """A block that runs if a bool blob is True, and no earlier block of its chain has run.

    cond_blob: None for the last block of a chain. _already_ran: the bool blob that the blocks of a
    chain share.
    """

    def __init__(
        self, cond_blob: Any = None, name: str | None = None, _already_ran: Any = None
    ) -> None:
        super().__init__(name)
        require(cond_blob or _already_ran, "A condition is needed.", "If")
        self._is_last = cond_blob is None
        net = _here()
        unless = [] if cond_blob is None else [net.Not(cond_blob)]
        if _already_ran is None:
            self._already_ran = net.Const(False)
        else:
            self._already_ran = _already_ran
            unless.insert(0, _already_ran)
        self._unless = unless[0] if len(unless) == 1 else net.Or(unless)

    def __enter__(self) -> Any:
        entered = super().__enter__()
        self.stop_if(self._unless)
        self.current_net().Const(True, blob_out=self._already_ran)
        return entered

    def Elif(self, cond: Any, name: str | None = None) -> Any:
        """Add a block that runs if `cond` is True and this and earlier blocks have not run."""
        return self._next(cond, name)

    def Else(self, name: str | None = None) -> Any:
        """Add a block that runs if this and earlier blocks have not run."""
        return self._next(None, name)

    def _next(self, cond: Any, name: str | None) -> Any:
        require(not self._is_last, "Nothing follows an Else.", "If")
        block = IfBlock(cond, name or self.name, _already_ran=self._already_ran)
        return NetBuilder.current().add(block)
