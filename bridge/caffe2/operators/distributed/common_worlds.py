# SPDX-License-Identifier: Apache-2.0
"""Common worlds: the processes that compute together, each a process group of torch.

Follows caffe2/contrib/gloo/common_world_ops.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from datetime import timedelta
from typing import Any

import torch

from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure
from bridge.caffe2.operators.distributed.stores import (
    StoreHandler,
    require_distributed,
    timeout_of,
)

DEVICES = ("cpu", "cuda")
_distributed: Any = torch.distributed  # which does not export its stores to type checkers
_ENGINES = ("", "GLOO", "NCCL")


class CommonWorld:
    """A process group: `rank` of `size` processes, which can wait `timeout` for each other.

    `store` has a part for each common world, named after the operator that creates it. When one of
    its operators fails, the connections are closed, so that the other processes fail at once and
    do not wait for this one.
    """

    def __init__(
        self,
        store: Any = None,
        name: str = "",
        rank: int = 0,
        size: int = 1,
        engine: str = "GLOO",
        timeout: timedelta | None = None,
        interface: str = "",
    ) -> None:
        self.store, self.name, self.rank, self.size = store, name, rank, size
        self.engine, self.timeout, self.interface = engine, timeout, interface
        self.failure = "it was not created"
        self._group: Any = None

    def connect(self) -> None:
        """Connect with the other processes, which do the same.

        Raises EnforceNotMet: they do not within the time-out.
        """
        # The n-th world of that name here meets the n-th of the others.
        key = f"{self.name}/times/{self.rank}"
        count = self.store.add(key, 1)
        store = _distributed.PrefixStore(f"{self.name}/{count}", self.store)
        try:
            self._group = self._new_group(store)
        except Exception as cause:
            self.store.add(key, -1)  # one that fails can be tried again
            raise EnforceNotMet(
                f"Process {self.rank} of {self.size} has not met the others within "
                f"{self._seconds():g} s: {_first_line(cause)}. Check that all processes run, with "
                "the same store, size and name of this operator; timeout_ms waits longer.",
                condition="all processes create the common world",
            ) from cause
        self.failure = ""

    def clone(self, name: str) -> CommonWorld:
        """Return another common world of the same processes, connected."""
        self.require_alive()
        other = copy(self)
        other.name = f"{self.name}/{name}"
        other.connect()
        return other

    def close(self, failure: str) -> None:
        """Close the connections; `failure` is the reason for later users."""
        self.failure = self.failure or failure
        self._group = None

    def require_alive(self) -> None:
        """Raise EnforceNotMet if the connections are closed."""
        if self.failure:
            raise EnforceNotMet(
                f"The common world cannot be used: {self.failure}. Create one anew, by "
                "CreateCommonWorld in all processes.",
                condition="the common world is connected",
            )

    @contextmanager
    def group(self, doing: str, timeout: timedelta | None = None) -> Iterator[Any]:
        """Yield torch's process group; an error of it closes the common world.

        timeout: the operator's own; None: the common world's.
        Raises EnforceNotMet: a process has died, or does not take part within the time-out.
        """
        self.require_alive()
        group = self._group
        try:
            yield group
        except Exception as cause:
            del group  # the last reference to it closes the connections
            reason = _first_line(cause)
            self.close(f"{doing} failed: {reason}")
            raise EnforceNotMet(
                f"Process {self.rank} of {self.size}: {reason}. Another process has ended, or has "
                f"not run {doing} within {self._seconds(timeout):g} s. The blobs may be half "
                "written; the common world is closed, create one anew.",
                condition="all processes take part within the time-out",
            ) from cause

    def finish(self, work: Any, timeout: timedelta | None = None) -> None:
        """Wait for the work that torch has begun."""
        if self.engine == "NCCL":
            # torch's own wait() does not hold up the host, and its watchdog ends the process.
            end = time.monotonic() + self._seconds(timeout)
            while not work.is_completed():
                if time.monotonic() > end:
                    self._group.abort()
                    raise TimeoutError("timed out")
                time.sleep(0.0001)
            work.wait()
        elif timeout is None:
            work.wait()
        else:
            work.wait(timeout)

    def _new_group(self, store: Any) -> Any:
        assert self.timeout is not None
        if self.engine == "NCCL":
            options = _distributed.ProcessGroupNCCL.Options()
            options._timeout = self.timeout + timedelta(minutes=10)  # ours comes first
            return _distributed.ProcessGroupNCCL(store, self.rank, self.size, options)
        group = _distributed.ProcessGroupGloo
        if not self.interface:
            return group(store, self.rank, self.size, self.timeout)
        options = group._Options()
        options._timeout = self.timeout
        options._devices = [group.create_device(interface=self.interface)]
        return group(store, self.rank, self.size, options)

    def _seconds(self, timeout: timedelta | None = None) -> float:
        return (timeout or self.timeout or timedelta()).total_seconds()


TypeMeta.Register(CommonWorld)


def _first_line(error: Exception) -> str:
    """Return torch's words without its file names and jokes."""
    line = str(error).partition("\n")[0] or type(error).__name__
    if line.startswith("["):
        line = line.partition("] ")[2] or line
    return line.partition(". This is typically")[0].rstrip(". ")


@procedure(
    "CreateCommonWorld",
    devices=DEVICES,
    inputs="0-1",
    outputs="1",
    gradient="undefined",
    effects=True,
)
def create_common_world(op: TorchOperator) -> None:
    """Create a common world of `size` processes, of which this one is `rank`.

    Input 0 is the store in which they meet; one process alone needs none. All processes run the
    operator, with the same `name`, or output if it has none. They wait `timeout_ms` (30,000) for
    each other, here and in all operators of the common world. `interface`: the network interface
    to use, by name. Engine GLOO, or NCCL for tensors on CUDA devices, one device per process.

    Raises EnforceNotMet: the others do not come within the time-out, wrong arguments.
    """
    size, rank = op.GetSingleArgument("size", 0), op.GetSingleArgument("rank", 0)
    require(size > 0, f"The argument size is 1 or more, the number of processes, not {size}.")
    require(0 <= rank < size, f"The argument rank is from 0 to below {size}, not {rank}.")
    engine = op._definition.engine
    require(engine in _ENGINES, f"The engine is GLOO or NCCL, not {engine!r}.")
    transport = op.GetSingleArgument("transport", "tcp")
    require(transport == "tcp", f"The transport is 'tcp', not {transport!r}.")
    require_distributed()
    if op.InputSize():
        store = op.Input(0, StoreHandler).store
    else:
        require(size == 1, f"{size} processes need a store to meet in, as input 0.")
        store = _distributed.HashStore()
    world = CommonWorld(
        store,
        op._definition.name or op._definition.outputs[0],
        rank,
        size,
        engine or "GLOO",
        timeout_of(op),
        op.GetSingleArgument("interface", ""),
    )
    world.connect()
    op.OutputBlob(0).Reset(world)


@procedure(
    "CloneCommonWorld", devices=DEVICES, inputs="1", outputs="1", gradient="undefined", effects=True
)
def clone_common_world(op: TorchOperator) -> None:
    """Create a common world of the processes of another, with connections of its own.

    Collectives of both can run at the same time. All processes run it.
    """
    name = op._definition.name or op._definition.outputs[0]
    op.OutputBlob(0).Reset(op.Input(0, CommonWorld).clone(name))


@procedure(
    "DestroyCommonWorld",
    devices=DEVICES,
    inputs="1",
    outputs="1",
    inplace="0>0!",
    gradient="undefined",
    effects=True,
)
def destroy_common_world(op: TorchOperator) -> None:
    """Close the connections of a common world. Waits for this process elsewhere fail."""
    op.Input(0, CommonWorld).close("DestroyCommonWorld has closed it")
