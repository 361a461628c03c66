# SPDX-License-Identifier: Apache-2.0
"""How a consumer asks for a capsule, and takes it."""

from __future__ import annotations

import gc

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import settle, shown, values_of
from bridge.conform.kit.source import Source, imported, required
from bridge.conform.kit.structures import capsule_name
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def consumer_renames_versioned(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    if not source.versioned():
        skip("the consumer passes no max_version")
    name = capsule_name(source.exports[-1].capsule)
    if name != b"used_dltensor_versioned":
        broken(f"after from_dlpack the capsule is named {name!r}")
    del tensor


def consumer_renames_old(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), version=None)
    tensor = imported(from_dlpack, source)
    name = capsule_name(source.exports[-1].capsule)
    if name != b"used_dltensor":
        broken(f"after from_dlpack the capsule is named {name!r}")
    del tensor


def consumer_name_lasts(from_dlpack: FromDLPack) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4"), version=version)
        tensor = imported(from_dlpack, source)
        others = [bytes([65 + n % 26]) * size for n in range(64) for size in range(1, 65)]
        if b"dltensor" not in (capsule_name(source.exports[-1].capsule) or b""):
            broken("the name that the consumer gave the capsule is lost")
        del tensor
        del others


def consumer_refuses_used(from_dlpack: FromDLPack) -> None:
    for name in (b"used_dltensor_versioned", b"used_dltensor"):
        version = (1, 3) if b"versioned" in name else None
        source = Source(np.arange(6, dtype="f4"), version=version, name=name)
        try:
            from_dlpack(source)
        except Exception:
            if source.called():
                broken("the capsule was consumed before, and the consumer called the deleter")
            continue
        if source.versioned() or version is None:
            broken(f"a capsule named {name.decode()!r}, which another has taken, was taken")


def consumer_refuses_other_name(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"), name=b"some_other_name")
    try:
        from_dlpack(source)
    except Exception:
        if source.called() or source.exports[-1].used():
            broken("a capsule of another name was refused, and renamed or deleted")
    else:
        broken("a capsule named 'some_other_name' was taken")


def consumer_asks_once(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    if len(source.exports) != 1:
        broken(f"from_dlpack made the producer export {len(source.exports)} times")
    del tensor


def consumer_arguments_known(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    for arguments in ({}, {"copy": None}, {"copy": True}, {"copy": False}):
        try:
            from_dlpack(source, **arguments)
        except Exception:
            continue
    for asked in source.asked:
        unknown = set(asked) - {"stream", "max_version", "dl_device", "copy"}
        if unknown:
            broken(f"the consumer passes {min(unknown)} to __dlpack__")
        if asked.get("copy") not in (None, True, False):
            broken(f"the consumer passes copy={asked['copy']!r} to __dlpack__")


def consumer_max_version_form(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    try:
        from_dlpack(source)
    except Exception:
        gc.collect()
    if not source.versioned():
        skip("the consumer passes no max_version")
    for asked in source.asked:
        version = asked.get("max_version")
        if version is None:
            continue
        if not isinstance(version, tuple) or [type(n) for n in version] != [int, int]:
            broken(f"the consumer passes max_version={version!r}")
        if version[0] != 1:
            broken(f"the consumer passes max_version={version}")


def consumer_old_capsule(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"), version=None)
    tensor = required(from_dlpack, source, "an old capsule, given though max_version was passed,")
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("an old capsule was read wrongly")


def consumer_falls_back(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for knows in (("stream",), ("stream", "max_version")):
        source = Source(np.arange(6, dtype="f4"), knows=knows)
        try:
            tensor = from_dlpack(source)
        except BufferError as error:
            skip(f"it refuses old capsules: {error}")
        except Exception as error:
            broken(
                f"a producer that knows only {', '.join(knows)}: {type(error).__name__}: {error}"
            )
        if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
            broken("the capsule of an older producer was read wrongly")


def consumer_values(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4").reshape(2, 3))
    tensor = required(from_dlpack, source, "an array of float64 on the CPU")
    seen = np.asarray(to_numpy(tensor))
    if seen.shape != (2, 3) or seen.dtype.kind != "f":
        broken(f"float64 of shape (2, 3) became {seen.dtype} of shape {seen.shape}")
    if seen.tolist() != [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]:
        broken(f"the values became {shown(seen, ())}")


def consumer_own_tensors(make: Any, from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    try:
        tensor = make(np.arange(6.0))
        tensor.__dlpack_device__()
    except Exception:
        skip("make gives nothing that can be exported")
    result = required(from_dlpack, tensor, "the library's own tensor")
    del tensor
    settle()
    if values_of(to_numpy, result).tolist() != np.arange(6.0).tolist():
        broken("the library's own tensor has other values after from_dlpack")


def consumer_changes_nothing(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for version in ((1, 3), None):
        source = Source(np.arange(6, dtype="f4").reshape(2, 3), version=version)
        tensor = imported(from_dlpack, source)
        if not source.exports[-1].deleted and bytes(source.root) != source.exports[-1].bytes:
            broken("from_dlpack changed the values")
        values_of(to_numpy, tensor)
        del tensor
        settle()
        if source.exports[-1].deleted and not source.exports[-1].intact:
            broken("the structure or the data that the consumer got was changed")
