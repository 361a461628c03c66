# SPDX-License-Identifier: Apache-2.0
"""Arguments of operators: Python values to Argument messages, and back."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

from bridge.annotation import Any
from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message, caffe2_pb2, kind_of, message_in, wire_bytes
from bridge.caffe2.base.names import shortened

TYPE_CHECKING = False

# Lists of at least this many numbers are stored as arrays, of these type codes.
_MIN_ARRAY_LENGTH = 4096
_ARRAY_CODES = {"floats": "f", "ints": "q"}

# The fields of Argument that hold one value, and those that hold several.
_SINGLE = ("f", "i", "s", "t", "n")
_REPEATED = ("floats", "ints", "strings", "tensors", "nets", "qtensors")

# By the type of the default, the field that is read first if several fields are set.
_PREFERRED_FIELDS = {bool: "i", int: "i", str: "s", bytes: "s"}

# An argument that was read: the fields that are set, by name.
if TYPE_CHECKING:
    Values = dict[str, Any]


def MakeArgument(key: Any, value: Any) -> Any:
    """Return the Argument named `key` that holds a copy of a Python value.

    float -> f; int and bool -> i; `str` (as UTF-8) and `bytes` -> s; a NetDef or ``core.Net`` -> n;
    another message -> s, serialized. An iterable sets floats, ints, strings or nets; an empty one
    sets no field. NumPy's scalars are treated as Python's, arrays as flat lists.

    Raises EnforceNotMet, also a ValueError: no field can hold the value.
    Follows MakeArgument, caffe2/python/utils.py, PyTorch 1.8.1.

    >>> from bridge.caffe2 import utils
    >>> utils.MakeArgument("axis", 1).i, list(utils.MakeArgument("shape", (2, 3)).ints)
    (1, [2, 3])
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
    """Return NumPy's scalars as Python's, arrays as flat lists, and other values unchanged."""
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
        f"Argument {key!r} is of type {type(value).__name__}{kinds}; arguments must be numbers, "
        "strings, NetDefs, messages, or sequences of one of these.",
        "MakeArgument",
    )


def _is_net(value: Any) -> bool:
    return kind_of(message_in(value)) == "NetDef"


def _serialized(message: Any) -> bytes:
    return wire_bytes(message, kind_of(message) or "message", "MakeArgument")


def ArgsToDict(args: Any) -> dict[str, Any]:
    """Return the value of each Argument by its name; None if no field is set.

    Unnamed arguments are left out. Follows ArgsToDict, caffe2/python/utils.py, PyTorch 1.8.1.
    """
    found: dict[str, Any] = {}
    for argument in args:
        values = [value for field, value in argument.ListFields() if field.name != "name"]
        if argument.HasField("name"):
            found[argument.name] = values[0] if values else None
    return found


def values_of(message: Any) -> dict[str, Values]:
    """Return the arguments of an OperatorDef or NetDef by name; each is a dict of its set fields.

    The values do not change with the message. Raises EnforceNotMet, also a ValueError: two
    arguments of one name differ. Follows ArgumentHelper, caffe2/utils/proto_utils.cc.
    """
    arguments: dict[str, Values] = {}
    for argument in message.arg:
        values: Values = {}
        for field, value in argument.ListFields():
            name = field.name
            if name != "name":
                values[name] = _copied(name, value)
        if arguments.setdefault(argument.name, values) is not values:
            _check_equal(message, argument)
    return arguments


def _check_equal(message: Any, argument: Any) -> None:
    for other in message.arg:
        if other.name == argument.name and other != argument:
            raise EnforceValueError(
                f"There are two arguments {argument.name!r} with different contents.",
                "Argument",
            )


def _copied(field: str, value: Any) -> Any:
    """Return a copy of the value of a field."""
    if field in ("f", "i"):
        return value
    if field == "s":
        return _text(value)
    if field == "strings":
        return [_text(item) for item in value]
    if field in ("floats", "ints"):
        # Weights are stored in arguments, and a list of objects takes eight times the memory.
        return list(value) if len(value) < _MIN_ARRAY_LENGTH else array(_ARRAY_CODES[field], value)
    if field in _SINGLE:
        return _copy(value)
    return [_copy(item) for item in value]


def _copy(message: Any) -> Any:
    copy = type(message)()
    copy.CopyFrom(message)
    return copy


def _text(value: bytes) -> str | bytes:
    """Return a string as `str`, or as `bytes` if it is not UTF-8."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value


def single_value(arguments: Mapping[str, Values], name: str, default: Any) -> Any:
    """Return the value of an argument, converted to the type of `default` unless that is None.

    It is `default` if there is no argument of the name.

    Raises EnforceNotMet, also a TypeError: the argument has another type, or several values.
    """
    values = arguments.get(name)
    if values is None:
        return default
    for field in (_PREFERRED_FIELDS.get(type(default), "f"), *_SINGLE):
        if field in values:
            value = values[field]
            break
    else:
        raise EnforceTypeError(
            f"Argument {name!r} has {_described(values)}, not one value; see GetRepeatedArgument.",
            "Operator.GetSingleArgument",
        )
    return _as_kind(value, default, name, "Operator.GetSingleArgument")


def repeated_value(arguments: Mapping[str, Values], name: str, default: Any) -> list[Any]:
    """Return the values of an argument as a new list, converted to the type of those in `default`.

    It is ``list(default)`` if there is no argument of the name, and empty if that has no repeated
    values. Raises EnforceNotMet, also a TypeError: they have another type.
    """
    values = arguments.get(name)
    if values is None:
        return list(default)
    for field in _REPEATED:
        if field in values:
            items = list(values[field])
            like = next(iter(default), None) if default else None
            if like is None:
                return items
            caller = "Operator.GetRepeatedArgument"
            return [_as_kind(item, like, name, caller) for item in items]
    return []


def _as_kind(value: Any, like: Any, name: str, caller: str) -> Any:
    """Return `value` converted to the type of `like`, if that is lossless; see `single_value`."""
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
        f"Argument {name!r} is {shortened(value)}; the operator expects a {type(like).__name__}.",
        caller,
    )


def _described(values: Values) -> str:
    return ", ".join(f"values in {field!r}" for field in values) or "no value"
