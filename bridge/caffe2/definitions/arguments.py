# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators: Python values into messages, and messages into Python values."""

from __future__ import annotations

from array import array

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, kind_of, message_in, wire_bytes
from bridge.caffe2.base.text import shortened

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["MakeArgument", "repeated_value", "single_value", "values_of"]

# From how many on numbers are kept as an array, and of what.
_MANY = 4096
_CODES = {"floats": "f", "ints": "q"}

# Fields of Argument that hold one value, and those that hold several.
_SINGLE = ("f", "i", "s", "t", "n")
_REPEATED = ("floats", "ints", "strings", "tensors", "nets", "qtensors")

# Where an argument has more than one value, the one that is of the type of the default.
_FIELDS = {bool: "i", int: "i", str: "s", bytes: "s"}

# How an argument is kept once it is read: its fields that are set, by name.
if TYPE_CHECKING:
    Values = dict[str, Any]


def MakeArgument(key: Any, value: Any) -> Any:
    """Make the Argument `key` out of a Python value.

    float -> f; int and bool -> i; `str` (as UTF-8) and `bytes` -> s; a NetDef or ``core.Net`` -> n;
    another message -> s, serialized. Iterables, arrays included, become floats, ints, strings or
    nets; an empty one sets none of these. NumPy's scalars and arrays are as Python's.

    Raises EnforceNotMet, also a ValueError: no field holds such a value.
    Follows MakeArgument, caffe2/python/utils.py, PyTorch 1.8.1.
    """
    argument = caffe2_pb2().Argument()
    try:
        argument.name = key
        _fill(argument, _plain(value), key)
    except (EnforceTypeError, EnforceValueError):
        raise
    except (TypeError, ValueError, OverflowError) as cause:
        raise EnforceValueError(
            f"Argument {key!r} cannot be {shortened(value)}: {cause}", "MakeArgument"
        ) from cause
    return argument


def _plain(value: Any) -> Any:
    """Return NumPy's scalars as Python's, and arrays as flat lists."""
    if hasattr(value, "__array__") and hasattr(value, "tolist") and hasattr(value, "reshape"):
        items = value.reshape(-1).tolist()
        is_scalar = any(cls.__name__ == "generic" for cls in type(value).__mro__)
        return items[0] if is_scalar else items
    return value


def _fill(argument: Any, value: Any, key: Any) -> None:
    if isinstance(value, float):
        argument.f = value
    elif isinstance(value, int):
        argument.i = int(value)
    elif isinstance(value, bytes):
        argument.s = value
    elif isinstance(value, str):
        argument.s = value.encode()
    elif _is_net(value):
        argument.n.CopyFrom(as_message(value, "NetDef", "MakeArgument"))
    elif hasattr(value, "SerializeToString"):
        argument.s = _serialized(value)
    else:
        _fill_repeated(argument, value, key)


def _fill_repeated(argument: Any, value: Any, key: Any) -> None:
    try:
        items = [_plain(item) for item in value]
    except TypeError:
        items = None
    if items is not None:
        if all(isinstance(item, int) for item in items):
            argument.ints.extend(map(int, items))
            return
        if all(isinstance(item, float) for item in items):
            argument.floats.extend(items)
            return
        if all(isinstance(item, (bytes, str)) for item in items):
            argument.strings.extend(
                item.encode() if isinstance(item, str) else item for item in items
            )
            return
        if all(_is_net(item) for item in items):
            argument.nets.extend(as_message(item, "NetDef", "MakeArgument") for item in items)
            return
        if all(hasattr(item, "SerializeToString") for item in items):
            argument.strings.extend(map(_serialized, items))
            return
    kinds = f" of {', '.join(sorted({type(item).__name__ for item in items}))}" if items else ""
    raise EnforceValueError(
        f"Argument {key!r} is of type {type(value).__name__}{kinds}; arguments are numbers, "
        "strings, NetDefs, messages, or sequences of one of these.",
        "MakeArgument",
    )


def _is_net(value: Any) -> bool:
    return kind_of(message_in(value)) == "NetDef"


def _serialized(message: Any) -> bytes:
    return wire_bytes(message, kind_of(message) or "message", "MakeArgument")


def values_of(message: Any) -> dict[str, Values]:
    """Read the arguments of an OperatorDef or NetDef: the fields of each that are set, by name.

    Raises EnforceNotMet, also a ValueError: a name comes twice, with other contents.
    Follows ArgumentHelper, caffe2/utils/proto_utils.cc.
    """
    arguments: dict[str, Values] = {}
    for argument in message.arg:
        values: Values = {}
        for field, value in argument.ListFields():
            name = field.name
            if name != "name":
                values[name] = _owned(name, value)
        if arguments.setdefault(argument.name, values) is not values:
            _check_the_same(message, argument)
    return arguments


def _check_the_same(message: Any, argument: Any) -> None:
    for other in message.arg:
        if other.name == argument.name and other != argument:
            raise EnforceValueError(
                f"There are two arguments {argument.name!r} with different contents.",
                "Argument",
            )


def _owned(field: str, value: Any) -> Any:
    """Return the value of a field as one that does not change with the message."""
    if field in ("f", "i"):
        return value
    if field == "s":
        return _text(value)
    if field == "strings":
        return [_text(item) for item in value]
    if field in ("floats", "ints"):
        # Weights come as arguments, and as objects they would take eight times the memory.
        return list(value) if len(value) < _MANY else array(_CODES[field], value)
    if field in _SINGLE:
        return _copy(value)
    return [_copy(item) for item in value]


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _text(value: bytes) -> str | bytes:
    """Return a string as `str`, or as `bytes` where it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def single_value(values: Values, name: str, default: Any, caller: str) -> Any:
    """Return the one value of an argument, of the type of `default`; of any type if that is None.

    Raises EnforceNotMet, also a TypeError: the argument is of another type, or has several values.
    """
    for field in (_FIELDS.get(type(default), "f"), *_SINGLE):
        if field in values:
            value = values[field]
            break
    else:
        raise EnforceTypeError(
            f"Argument {name!r} has {_described(values)}, not one value; see GetRepeatedArgument.",
            caller,
        )
    return _as_kind(value, default, name, caller)


def repeated_value(values: Values, name: str, default: Any, caller: str) -> list[Any]:
    """Return the values of an argument as a new list, of the type of the elements of `default`.

    Empty where the argument has no repeated values. Raises EnforceNotMet, also a TypeError: they
    are of another type.
    """
    for field in _REPEATED:
        if field in values:
            items = list(values[field])
            like = next(iter(default), None) if default else None
            if like is None:
                return items
            return [_as_kind(item, like, name, caller) for item in items]
    return []


def _as_kind(value: Any, like: Any, name: str, caller: str) -> Any:
    """Return `value` as the type of `like`, where nothing is lost by it."""
    if like is None or type(value) is type(like):
        return value
    if isinstance(like, bool):
        if isinstance(value, int):
            return bool(value)
    elif isinstance(like, int):
        if isinstance(value, int):
            return value
    elif isinstance(like, float):
        if isinstance(value, (int, float)):
            return float(value)
    elif isinstance(like, (str, bytes)):
        if isinstance(value, bytes):
            return value
        if isinstance(value, str):
            return value if isinstance(like, str) else value.encode()
    else:
        return value
    raise EnforceTypeError(
        f"Argument {name!r} is {shortened(value)}, and the operator wants a {type(like).__name__}.",
        caller,
    )


def _described(values: Values) -> str:
    return ", ".join(f"values in {field!r}" for field in values) or "no value"
