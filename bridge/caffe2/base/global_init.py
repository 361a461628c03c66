# SPDX-License-Identifier: Apache-2.0
"""GlobalInit: the command-line flags of a Caffe2 script."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bridge.c10.errors import EnforceTypeError, EnforceValueError
from bridge.c10.resize_flags import FLAGS

_args: list[str] = []
_listeners: dict[str, Callable[[str], None]] = {}


def on_flag(name: str, listener: Callable[[str], None]) -> None:
    """Call `listener` with the value of the flag `name` now, if it was given, and when it is."""
    _listeners[name] = listener
    values = dict(_flag(one) for one in _args if one.startswith("--"))
    if name in values:
        listener(values[name])


def GlobalInit(args: Sequence[str]) -> None:
    """Apply the flags of a command line, whose first word is the program.

    ``--caffe2_keep_on_shrink`` and ``--caffe2_max_keep_on_shrink_memory`` set `FLAGS`, and with
    ``--caffe2_operator_throw_if_fp_exceptions`` operators fail that divide by zero, overflow or
    compute undefined results; others, for Caffe2's loggers, threads and allocators, have no
    effect.

    Raises EnforceNotMet: not a list of strings (also a TypeError), or an invalid value of a flag
    (also a ValueError).
    """
    caller = "GlobalInit"
    given: object = args
    if (
        isinstance(given, (str, bytes))
        or not isinstance(given, Sequence)
        or not all(isinstance(one, str) for one in given)
    ):
        raise EnforceTypeError("GlobalInit takes a list of strings.", caller)
    values = dict(_flag(one) for one in args[1:] if one.startswith("--"))
    keep = values.get("caffe2_keep_on_shrink")
    most = values.get("caffe2_max_keep_on_shrink_memory")
    if keep is not None and keep.lower() not in ("0", "1", "true", "false"):
        raise EnforceValueError(f"caffe2_keep_on_shrink cannot be {keep!r}.", caller)
    try:
        limit = None if most is None else int(most)
    except ValueError:
        limit = 1 << 63
    if limit is not None and not -(1 << 63) <= limit < 1 << 63:
        raise EnforceValueError(
            f"caffe2_max_keep_on_shrink_memory is an int64, not {most!r}.", caller
        )
    if keep is not None:
        FLAGS.caffe2_keep_on_shrink = keep.lower() in ("1", "true")
    if limit is not None:
        FLAGS.caffe2_max_keep_on_shrink_memory = limit
    _args.extend(args[1:])
    for name, listener in _listeners.items():
        if name in values:
            listener(values[name])


def _flag(text: str) -> tuple[str, str]:
    name, given, value = text[2:].partition("=")
    return name, value if given else "1"


def GetGlobalInitArgs() -> list[str]:
    """Return a list of the flags of all calls of `GlobalInit` so far."""
    return list(_args)
