# SPDX-License-Identifier: Apache-2.0
"""Creating nets on a table of blobs, kept there or for one run."""

from __future__ import annotations

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.execution.blob_table import BlobTable
from bridge.caffe2.execution.runnable_net import RunnableNet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def create_net(table: BlobTable, message: Any, overwrite: bool, caller: str) -> RunnableNet:
    """Create the net of a NetDef on the blobs of `table`, keep it there by its name, return it.

    Raises EnforceNotMet, also a ValueError: it has no name, or a net of that name exists and is not
    to be replaced (`overwrite`); and as `RunnableNet`.
    """
    name = message.name
    if not message.HasField("name"):
        raise EnforceValueError(
            "The net has no name; a net that is kept needs one.",
            caller,
            condition="net.has_name()",
        )
    if name in table._nets and not overwrite:
        raise _known(name, caller)
    net = RunnableNet(message, table, caller)
    if overwrite:
        table._nets[name] = net
    elif table._nets.setdefault(name, net) is not net:
        raise _known(name, caller)  # another thread has created it meanwhile
    return net


def _known(name: str, caller: str) -> EnforceValueError:
    return EnforceValueError(
        f"There is already a net {name!r}; overwrite=True replaces it.",
        caller,
        condition="overwrite",
    )


def run_net_once(table: BlobTable, message: Any, caller: str) -> None:
    """Create the net of a NetDef on the blobs of `table`, run it once and discard it."""
    RunnableNet(message, table, caller)._run(caller)
