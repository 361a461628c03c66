# SPDX-License-Identifier: Apache-2.0
"""How a consumer reads the flags and the version."""

from __future__ import annotations

import gc

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import given, values_of
from bridge.conform.kit.source import Source, imported, required
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def consumer_flag_read_only_taken(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), flags=1)
    try:
        tensor = from_dlpack(source)
    except Exception as error:
        tensor = error
    if not source.versioned():
        skip("the consumer passes no max_version")
    if isinstance(tensor, Exception):
        broken(f"a read-only tensor was refused: {type(tensor).__name__}: {tensor}")


def consumer_flag_read_only_kept(
    from_dlpack: FromDLPack, to_numpy: ToNumPy, make: Any = None
) -> None:
    source = Source(np.arange(6, dtype="f4"), flags=1)
    tensor = imported(from_dlpack, source)
    if not source.versioned():
        skip("the consumer passes no max_version")
    seen = to_numpy(tensor)
    if not seen.flags.writeable or not source.watch.holds(seen.ctypes.data):
        skip("ok: what it shares cannot be written")
    plain = Source(np.arange(6, dtype="f4"))
    knows = isinstance(tensor, np.ndarray) or hasattr(getattr(tensor, "flags", None), "writeable")
    knows = knows or any(hasattr(tensor, name) for name in ("readonly", "read_only", "writeable"))
    if make is not None and not knows:
        array = given(np.arange(6, dtype="f4"))[0]
        array.flags.writeable = False
        try:
            knows = not to_numpy(make(array)).flags.writeable
        except Exception:
            gc.collect()
    if not knows:
        skip("nothing shows that it has read-only arrays; without them the flag is ignored")
    del plain
    broken("memory of a read-only tensor can be written through the consumer's tensor")


def consumer_flag_copied(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"), flags=2)
    tensor = required(from_dlpack, source, "a tensor with the flag IS_COPIED")
    if not source.versioned():
        skip("the consumer passes no max_version")
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("a tensor with the flag IS_COPIED was read wrongly")


def consumer_flag_padded(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(8, dtype="u1"), flags=4, code=17, bits=4)
    tensor = imported(from_dlpack, source)
    if not source.versioned():
        skip("the consumer passes no max_version")
    found = values_of(to_numpy, tensor)
    if found.size != 8 or found.astype("f4").tolist() != [0, 0.5, 1, 1.5, 2, 3, 4, 6]:
        broken("padded elements of 4 bits were read as packed")


def consumer_version_minor(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for minor in (0, 4, 99):
        source = Source(np.arange(6, dtype="f4"), version=(1, minor))
        try:
            tensor = from_dlpack(source)
        except Exception as error:
            tensor = error
        if not source.versioned():
            skip("the consumer passes no max_version")
        if isinstance(tensor, Exception):
            broken(f"version 1.{minor} was refused: {type(tensor).__name__}: {tensor}")
        if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
            broken(f"a structure of version 1.{minor} was read wrongly")


def consumer_version_major(from_dlpack: FromDLPack) -> None:
    for major in (2, 17):
        source = Source(np.arange(6, dtype="f4"), version=(major, 0))
        try:
            from_dlpack(source)
        except Exception:
            if not source.versioned():
                skip("the consumer passes no max_version")
            continue
        if not source.versioned():
            skip("the consumer passes no max_version")
        broken(f"a structure of version {major}.0 was taken")


def consumer_version_major_deletes(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), version=(2, 0))
    try:
        from_dlpack(source)
    except Exception:
        gc.collect()
    if not source.versioned():
        skip("the consumer passes no max_version")
    times = source.deletions()[-1]
    if times == 0:
        broken("a structure of version 2.0 was taken from its capsule, and the deleter not called")
    if times > 1:
        broken(
            f"a structure of version 2.0 is deleted {times} times, by the consumer or by the "
            "capsule"
        )


def consumer_version_major_reads_nothing(from_dlpack: FromDLPack) -> None:
    fields: dict[str, Any] = {"data": 8, "ndim": 3, "shape": 16, "strides": 24}
    probe = Source(np.arange(6, dtype="f4"))
    imported(from_dlpack, probe)
    if not probe.versioned():
        skip("the consumer passes no max_version")
    source = Source(np.arange(6, dtype="f4"), version=(2, 0), **fields)
    try:
        from_dlpack(source)
    except Exception:
        gc.collect()
    else:
        broken("a structure of version 2.0 was taken")
