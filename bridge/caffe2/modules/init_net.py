# SPDX-License-Identifier: Apache-2.0
"""Init nets: the nets that make the weights of another net."""

from __future__ import annotations

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.absent_gpus import without_absent_gpus
from bridge.caffe2.base.names import listed
from bridge.caffe2.definitions.ssa import reads_and_writes
from bridge.caffe2.workspaces.named_nets import run_net_once

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge.caffe2.execution.blob_table import BlobTable


def run_init_net(table: BlobTable, message: Any, caller: str) -> None:
    """Run the NetDef of an init net once on `table`, which has no blobs yet.

    Raises EnforceNotMet: the net reads blobs, so it is not an init net (also a ValueError), or an
    operator failed.
    """
    read, _ = reads_and_writes((one.input, one.output) for one in message.op)
    if read:
        raise EnforceValueError(
            f"The init net {message.name!r} reads {listed(read)}, which it does not make: it is a "
            "net that computes, and holds no weights. Were the two nets swapped?",
            caller,
        )
    run_net_once(table, without_absent_gpus(message, caller), caller)
