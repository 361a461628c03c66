# SPDX-License-Identifier: Apache-2.0
"""Init nets: the nets that make the weights of another net."""

from __future__ import annotations

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.names import listed
from bridge.caffe2.execution.runnable_net import run_net_once
from bridge.caffe2.modules.absent_gpus import without_absent_gpus

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge.caffe2.execution.blob_table import BlobTable


def blobs_read(message: Any) -> list[str]:
    """Return the blobs that the operators of a NetDef read and none before them writes."""
    written: set[str] = set()
    read: dict[str, None] = {}
    for operator in message.op:
        read.update(dict.fromkeys(name for name in operator.input if name not in written))
        written.update(operator.output)
    return list(read)


def run_init_net(table: BlobTable, message: Any, caller: str) -> None:
    """Run the NetDef of an init net once on `table`, which has no blobs yet.

    Raises EnforceNotMet: the net reads blobs, so it is not an init net (also a ValueError), or an
    operator failed.
    """
    read = blobs_read(message)
    if read:
        raise EnforceValueError(
            f"The init net {message.name!r} reads {listed(read)}, which it does not make: it is a "
            "net that computes, and holds no weights. Were the two nets swapped?",
            caller,
        )
    run_net_once(table, without_absent_gpus(message, caller), caller)
