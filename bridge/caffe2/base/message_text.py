# SPDX-License-Identifier: Apache-2.0
"""Messages of any class from text and bytes, in strings and files.

Follows caffe2/python/utils.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from bridge.annotation import Any, Array
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import caffe2_pb2, check_text, copied
from bridge.caffe2.base.wrapped_errors import wrapping


def TryReadProtoWithClass(cls: type, s: Any) -> Any:
    """Return a new message of class `cls`, read from text, or else from bytes.

    Raises EnforceNotMet: `s` is neither (also a ValueError), or not str or bytes (a TypeError).
    """
    if not isinstance(s, (str, bytes, bytearray)):
        raise EnforceTypeError(
            f"A message is read from str or bytes, not {type(s).__name__}.",
            "TryReadProtoWithClass",
        )
    from google.protobuf import text_format
    from google.protobuf.message import DecodeError

    message = cls()
    try:
        return text_format.Parse(s if isinstance(s, str) else bytes(s), message)
    except (text_format.ParseError, UnicodeDecodeError):
        message = cls()
    try:
        message.ParseFromString(s.encode() if isinstance(s, str) else bytes(s))
    except DecodeError as cause:
        raise EnforceValueError(
            f"Not a valid {cls.__name__}, neither as text nor as bytes: {cause}",
            "TryReadProtoWithClass",
        ) from cause
    return message


def GetContentFromProto(obj: Any, function_map: dict[type, Callable[[Any], Any]]) -> Any:
    """Call the function for the class of a message; return its result, None without a function."""
    function = function_map.get(type(obj))
    return None if function is None else function(obj)


def GetContentFromProtoString(s: Any, function_map: dict[type, Callable[[Any], Any]]) -> Any:
    """Read a message of the first class that fits, and return the result of its function.

    Raises EnforceNotMet, also a ValueError: no class fits.
    """
    for cls, function in function_map.items():
        try:
            message = TryReadProtoWithClass(cls, s)
        except EnforceValueError:
            continue
        return function(message)
    raise EnforceValueError("Cannot find a fit protobuffer class.", "GetContentFromProtoString")


def ConvertProtoToBinary(proto_class: type, filename: str, out_filename: str) -> None:
    """Read a message from a file, as text or bytes, and write its bytes to `out_filename`.

    Raises EnforceNotMet, also a ValueError: the file has no such message. OSError.
    """
    with open(filename, "rb") as source:
        message: Any = TryReadProtoWithClass(proto_class, source.read())
    with open(out_filename, "wb") as target:
        target.write(message.SerializeToString())


def CaffeBlobToNumpyArray(blob: Any) -> Array:
    """Return the values of Caffe's BlobProto, old or new, as a new float32 array.

    Raises EnforceNotMet, also a ValueError: their number does not match the sizes.
    """
    import numpy as np

    old = (blob.num, blob.channels, blob.height, blob.width)
    sizes = old if blob.num else tuple(blob.shape.dim)
    try:
        return np.asarray(blob.data, dtype=np.float32).reshape(sizes)
    except ValueError as cause:
        raise EnforceValueError(
            f"The message's {len(blob.data)} values are not a tensor of sizes {list(sizes)}.",
            "CaffeBlobToNumpyArray",
        ) from cause


def net_message(net: Any, caller: str) -> Any:
    """Return the NetDef of a net, as a copy.

    net: a ``core.Net``, a NetDef of any class, its bytes, or the path of a ``.pb`` or ``.pbtxt``
    file. Raises EnforceNotMet: it is none of these, or a name is not UTF-8 (also a TypeError or
    ValueError), or the file cannot be read (also an OSError).
    """
    if isinstance(net, (str, os.PathLike)):
        return read_net(net, caller)
    return _with_text(copied(net, "NetDef", caller), caller)


def _with_text(net: Any, caller: str) -> Any:
    names = [text for op in net.op for text in (op.type, op.name, *op.input, *op.output)]
    check_text(net, (net.name, *net.external_input, *net.external_output, *names), caller)
    return net


def read_net(path: str | os.PathLike[str], caller: str) -> Any:
    """Return the NetDef in a ``.pb`` or ``.pbtxt`` file.

    Raises EnforceNotMet: it cannot be read (also an OSError), is not a NetDef, or a name is not
    UTF-8 (a ValueError).
    """
    name = os.fspath(path)
    with wrapping(f"The net {name!r} cannot be read", caller, OSError), open(name, "rb") as file:
        data = file.read()
    try:
        net = TryReadProtoWithClass(caffe2_pb2().NetDef, data)
    except EnforceValueError as cause:
        raise EnforceValueError(
            f"The file {name!r} is not a NetDef, neither as text nor as bytes.", caller
        ) from cause
    return _with_text(net, caller)
