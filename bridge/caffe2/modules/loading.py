# SPDX-License-Identifier: Apache-2.0
"""Nets from objects, bytes and files."""

from __future__ import annotations

import os
from pathlib import Path

from bridge.c10.errors import EnforceValueError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.message_text import TryReadProtoWithClass
from bridge.caffe2.base.messages import as_message, caffe2_pb2

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def net_message(net: Any, caller: str) -> Any:
    """Return the NetDef of a net, as a copy.

    net: a ``core.Net``, a NetDef of any class, its bytes, or the path of a ``.pb`` or ``.pbtxt``
    file. Raises EnforceNotMet: it is none of these (also a TypeError or ValueError), or the file
    cannot be read (also an OSError).
    """
    if isinstance(net, (str, os.PathLike)):
        return _read(Path(net), caller)
    copy = caffe2_pb2().NetDef()
    copy.CopyFrom(as_message(net, "NetDef", caller))
    return copy


def _read(path: Path, caller: str) -> Any:
    try:
        data = path.read_bytes()
    except OSError as cause:
        raise wrap_error(f"The net {str(path)!r} cannot be read", caller, cause) from cause
    try:
        return TryReadProtoWithClass(caffe2_pb2().NetDef, data)
    except EnforceValueError as cause:
        raise EnforceValueError(
            f"The file {str(path)!r} is not a NetDef, neither as text nor as bytes.", caller
        ) from cause
