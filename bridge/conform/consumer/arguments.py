# SPDX-License-Identifier: Apache-2.0
"""The arguments of `from_dlpack`, `copy` and `device`, and the ones that a consumer passes on."""

from __future__ import annotations

import gc

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import is_shown, settle, values_of
from bridge.conform.kit.source import CONSTANT, Source, imported
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def sees_changes(source: Source, tensor: Any, to_numpy: ToNumPy) -> bool:
    """Return whether a tensor shows the values written to the source's own memory."""
    source.array[...] = 77
    return bool((values_of(to_numpy, tensor) == 77).any())


def consumer_knows_copy(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    del tensor
    for copy in (None, True, False):
        try:
            from_dlpack(Source(np.arange(6, dtype="f4")), copy=copy)
        except TypeError as error:
            broken(f"from_dlpack(x, copy={copy}) raised TypeError: {error}")
        except Exception:
            gc.collect()


def consumer_copy_true(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source, copy=True)
    if sees_changes(source, tensor, to_numpy):
        broken("from_dlpack(x, copy=True) shares the memory of x")
    if values_of(to_numpy, tensor).tolist() != np.arange(6.0).tolist():
        broken("from_dlpack(x, copy=True) has other values")


def consumer_copy_true_taken(from_dlpack: FromDLPack) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    source = Source(np.arange(6, dtype="f4"))
    try:
        from_dlpack(source, copy=True)
    except TypeError as error:
        skip(f"it does not know copy: {error}")
    except Exception as error:
        broken(f"from_dlpack(x, copy=True) raised {type(error).__name__}: {error}")


def consumer_copy_true_old_producer(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for knows in (("stream", "max_version"), ("stream",)):
        source = Source(np.arange(6, dtype="f4"), knows=knows)
        tensor = imported(from_dlpack, source, copy=True)
        if sees_changes(source, tensor, to_numpy):
            broken("the producer does not know copy, and from_dlpack(x, copy=True) shares memory")


def consumer_copy_true_deletes(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source, copy=True)
    del tensor
    if any(times != 1 for times in source.deletions()):
        broken(f"with copy=True the deleters were called {source.deletions()} times")


def consumer_copy_false(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source, copy=False)
    if not sees_changes(source, tensor, to_numpy):
        broken("from_dlpack(x, copy=False) copied")
    source = Source(np.arange(6, dtype="f4"), flags=1)
    try:
        tensor = from_dlpack(source, copy=False)
    except Exception:
        skip("ok: it refuses a read-only tensor with copy=False")
    if not sees_changes(source, tensor, to_numpy):
        broken("from_dlpack(x, copy=False) copied a read-only tensor")


def consumer_copy_false_shares(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.arange(6, dtype="f4"))
    tensor = imported(from_dlpack, source)
    if not sees_changes(source, tensor, to_numpy):
        skip("it copies where it may share")
    try:
        from_dlpack(Source(np.arange(6, dtype="f4")), copy=False)
    except TypeError as error:
        skip(f"it does not know copy: {error}")
    except Exception as error:
        broken(f"no copy is necessary, and copy=False raised {type(error).__name__}: {error}")


def consumer_copy_none(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")), copy=False)
    for arguments in ({}, {"copy": None}):
        source = Source(np.arange(6, dtype="f4"))
        tensor = imported(from_dlpack, source, **arguments)
        if not sees_changes(source, tensor, to_numpy):
            broken("the memory can be shared, and was copied though copy is None")


def consumer_copy_passed_on(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    refuses = BufferError("a copy is necessary")
    for copy in (False, True):
        source = Source(np.arange(6, dtype="f4"))
        tensor = imported(from_dlpack, source, copy=copy)
        said = [asked.get("copy") for asked in source.asked]
        if (not copy) in said:
            broken(f"from_dlpack(x, copy={copy}) passes copy={not copy} to __dlpack__")
        del tensor
    source = Source(np.arange(6, dtype="f4"), raises=refuses)
    try:
        from_dlpack(source, copy=False)
    except Exception:
        settle()
    else:
        broken("the producer refuses copy=False, and from_dlpack(x, copy=False) gave a tensor")


def consumer_copy_unasked(from_dlpack: FromDLPack) -> None:
    for arguments in ({}, {"copy": None}):
        source = Source(np.arange(6, dtype="f4"))
        imported(from_dlpack, source, **arguments)
        for asked in source.asked:
            if asked.get("copy") is not None:
                broken(f"copy is None, and the consumer passes copy={asked['copy']} to __dlpack__")


def consumer_device_none(from_dlpack: FromDLPack) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    try:
        from_dlpack(Source(np.arange(6, dtype="f4")), device=None)
    except TypeError as error:
        skip(f"it does not know device: {error}")
    except Exception as error:
        broken(f"from_dlpack(x, device=None) raised {type(error).__name__}: {error}")


def consumer_device_own(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    tensor = imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    device = getattr(tensor, "device", None)
    if device is None:
        skip("its tensors have no attribute device")
    source = Source(np.arange(6, dtype="f4"))
    try:
        again = from_dlpack(source, device=device)
    except TypeError as error:
        skip(f"it does not know device: {error}")
    except BufferError as error:
        skip(f"it refuses a device: {error}")
    except Exception as error:
        broken(f"the device of its own tensor, device={device}: {type(error).__name__}: {error}")
    if str(getattr(again, "device", None)) != str(device):
        broken(f"device={device} gave a tensor on {again.device}")
    if values_of(to_numpy, again).tolist() != np.arange(6.0).tolist():
        broken("with a device given the values are others")


def consumer_dl_device_form(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    for arguments in ({}, {"copy": True}, {"copy": False}):
        try:
            from_dlpack(source, **arguments)
        except Exception:
            gc.collect()
    for asked in source.asked:
        device = asked.get("dl_device")
        if device is None:
            continue
        if not isinstance(device, tuple) or len(device) != 2:
            broken(f"the consumer passes dl_device={device!r}")
        if tuple(map(int, device)) != (1, 0):
            broken(
                f"a tensor on the CPU, no device asked for; the consumer passes "
                f"dl_device={tuple(map(int, device))}"
            )


def consumer_stream_none(from_dlpack: FromDLPack) -> None:
    source = Source(np.arange(6, dtype="f4"))
    imported(from_dlpack, source)
    for asked in source.asked:
        if asked.get("stream") not in (None, -1) or asked.get("stream") is False:
            broken(f"the consumer passes stream={asked['stream']!r} for a tensor on the CPU")


def consumer_device_refused(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    for device in ((8, 0), (7, 0), (17, 0)):
        try:
            tensor = from_dlpack(Source(np.arange(6, dtype="f4"), device=device))
        except Exception:
            continue
        try:
            kind = tensor.__dlpack_device__()[0]
        except Exception:
            kind = 1 if to_numpy is None or is_shown(to_numpy, tensor) else None
        if kind == 1:
            broken(f"a tensor on device type {device[0]} was taken as if it were on the CPU")


def consumer_device_refused_by_buffer_error(from_dlpack: FromDLPack) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    try:
        from_dlpack(Source(np.arange(6, dtype="f4"), device=(8, 0), deleter=CONSTANT))
    except BufferError:
        gc.collect()
    except Exception as error:
        broken(f"a tensor on Metal was refused by {type(error).__name__}: {error}")
    else:
        skip("it takes a tensor on Metal")


def consumer_passes_buffer_error(from_dlpack: FromDLPack) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    source = Source(np.arange(6, dtype="f4"), raises=BufferError("the kit cannot export this"))
    try:
        from_dlpack(source)
    except BufferError:
        gc.collect()
    except Exception as error:
        broken(f"__dlpack__ raised BufferError, and from_dlpack {type(error).__name__}: {error}")
    else:
        broken("__dlpack__ raised BufferError, and from_dlpack nothing")
    source = Source(np.arange(6, dtype="f4"), raises=BufferError("not this"), once=True)
    try:
        from_dlpack(source)
    except BufferError:
        gc.collect()
    except Exception as error:
        broken(f"__dlpack__ raised BufferError, and from_dlpack {type(error).__name__}: {error}")
    else:
        broken("__dlpack__ raised BufferError, and from_dlpack asked again")


def consumer_passes_other_errors(from_dlpack: FromDLPack) -> None:
    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    for error in (MemoryError("no memory"), RuntimeError("a fault"), ValueError("a value")):
        try:
            from_dlpack(Source(np.arange(6, dtype="f4"), raises=error))
        except type(error):
            continue
        except Exception as other:
            if other.__cause__ is error:
                continue  # it is told apart, and passed on as the cause
            broken(
                f"__dlpack__ raised {type(error).__name__}, and from_dlpack "
                f"{type(other).__name__}: {other}"
            )
        broken(f"__dlpack__ raised {type(error).__name__}, and from_dlpack nothing")


def consumer_passes_device_error(from_dlpack: FromDLPack) -> None:
    class Broken(Source):
        def __dlpack_device__(self) -> tuple[int, int]:
            self.asked.append({"device": True})
            raise BufferError("the kit has no device")

    imported(from_dlpack, Source(np.arange(6, dtype="f4")))
    source = Broken(np.arange(6, dtype="f4"))
    try:
        from_dlpack(source)
    except BufferError:
        gc.collect()
    except Exception as error:
        broken(
            f"__dlpack_device__ raised BufferError, and from_dlpack {type(error).__name__}: {error}"
        )
    else:
        if {"device": True} in source.asked:
            broken("__dlpack_device__ raised BufferError, and from_dlpack nothing")
