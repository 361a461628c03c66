# SPDX-License-Identifier: Apache-2.0
"""Messages as bytes, and the names of blobs and nets, as `caffe2.python.workspace` converts them.

>>> from bridge.caffe2 import core, workspace
>>> net = core.Net("named_here")
>>> workspace.StringifyProto(net) == net.Proto().SerializeToString()
True
>>> workspace.StringifyBlobName(core.BlobReference("x")), workspace.StringifyNetName(net)
('x', 'named_here')
>>> workspace.GetNetName(net.Proto())
'named_here'
>>> with core.NameScope("scope"):
...     workspace.GetNameScope()
'scope/'
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.base.messages import kind_of, message_in, wire_bytes
from bridge.caffe2.base.names import name_of
from bridge.caffe2.definitions.scope import CurrentNameScope


def StringifyProto(obj: Any) -> Any:
    """Return the bytes of a message, or of the message of a ``core`` object; strings unchanged.

    Raises EnforceNotMet, also a ValueError: it is none of these, or lacks a required field.
    """
    if isinstance(obj, (str, bytes)):
        return obj
    message = message_in(obj)
    if not hasattr(message, "SerializeToString"):
        raise EnforceValueError(
            f"Unexpected argument to StringifyProto of type {type(obj).__name__}",
            "StringifyProto",
        )
    return wire_bytes(message, kind_of(message) or "message", "StringifyProto")


def StringifyBlobName(name: Any) -> str:
    """Return the name of a blob: a str, bytes or a BlobReference.

    Raises EnforceNotMet, also an AssertionError: it is none of these.
    """
    return _name(name, "BlobReference")


def StringifyNetName(name: Any) -> str:
    """Return the name of a net: a str, bytes or a ``core.Net``.

    Raises EnforceNotMet, also an AssertionError: it is none of these.
    """
    return _name(name, "Net")


def _name(name: Any, kind: str) -> str:
    if isinstance(name, (str, bytes)):
        return name_of(name, f"Stringify{kind}Name")
    if type(name).__name__ == kind:
        return str(name)
    raise EnforceAssertionError(f"Expected a string or {kind}", f"Stringify{kind}Name")


def GetNetName(net: Any) -> str:
    """Return the name of a net: a str, bytes, a ``core.Net`` or a NetDef.

    Raises EnforceNotMet, also a ValueError: it is none of these.
    """
    if isinstance(net, (str, bytes)):
        return name_of(net, "GetNetName")
    message = message_in(net)
    if kind_of(message) != "NetDef":
        raise EnforceValueError(f"Not a Net object: {net}", "GetNetName")
    return str(message.name)


def GetNameScope() -> str:
    """Return the current name scope: empty, or a prefix that ends in a slash."""
    return CurrentNameScope()
