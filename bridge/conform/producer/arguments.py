# SPDX-License-Identifier: Apache-2.0
"""The arguments of `__dlpack__`: `max_version`, `copy`, `dl_device`, `stream`."""

from __future__ import annotations

import enum

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, asked
from bridge.conform.kit.given import given, made, shown
from bridge.conform.kit.lying import lying
from bridge.conform.kit.structures import capsule_name
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def require_known(error: Exception) -> None:
    """Skip the case if an argument is not known, which is a rule of its own."""
    if isinstance(error, TypeError) and "keyword argument" in str(error):
        skip(f"it does not know the argument: {error}")


def producer_knows_arguments(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    device = tensor.__dlpack_device__()
    for name, value in (
        ("stream", None),
        ("max_version", (1, 0)),
        ("dl_device", device),
        ("copy", None),
        ("copy", True),
    ):
        try:
            tensor.__dlpack__(**{name: value})
        except TypeError as error:
            broken(f"__dlpack__({name}={value}) raised TypeError: {error}")
        except BufferError:
            continue


def producer_defaults(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    plain = lying(tensor, watch, max_version=None)
    named = asked(tensor, stream=None, max_version=None, dl_device=None, copy=None)
    if capsule_name(named) != plain.name:
        broken(f"with None for each argument the capsule is named {capsule_name(named)!r}")
    full = lying(tensor, watch, max_version=(1, 3), stream=None, dl_device=None, copy=None)
    if full.start != plain.start:
        broken("with None for each argument other memory is exported")


def producer_old_call(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    try:
        capsule = tensor.__dlpack__()
    except BufferError:
        capsule = None
    except Exception as error:
        broken(f"__dlpack__() raised {type(error).__name__}: {error}")
    if capsule is not None and capsule_name(capsule) == b"dltensor_versioned":
        broken("__dlpack__() without max_version gave a versioned capsule")
    try:
        capsule = tensor.__dlpack__(copy=True)
    except Exception:
        skip("ok: it makes no copies in old capsules")
    if capsule_name(capsule) == b"dltensor_versioned":
        broken("__dlpack__(copy=True) without max_version gave a versioned capsule")


def producer_old_call_values(make: Make) -> None:
    values = np.arange(6.0).reshape(2, 3)
    export = Export(made(make, given(values)[0]), max_version=None)
    if export.shape != [2, 3] or export.values().tolist() != values.tolist():
        broken("the old capsule has other values")


def producer_max_version_new(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for version in ((1, 0), (1, 1), (1, 3), (1, 99), (2, 0)):
        try:
            capsule = tensor.__dlpack__(max_version=version)
        except TypeError as error:
            skip(f"it does not know max_version: {error}")
        except Exception as error:
            broken(f"__dlpack__(max_version={version}) raised {type(error).__name__}: {error}")
        if capsule_name(capsule) not in (b"dltensor", b"dltensor_versioned"):
            broken(f"max_version={version} gave a capsule named {capsule_name(capsule)!r}")


def producer_max_version_old(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    try:
        capsule = tensor.__dlpack__(max_version=(0, 8))
    except BufferError:
        skip("it refuses a consumer of DLPack 0.8 with BufferError, as it may")
    except TypeError as error:
        skip(f"it does not know max_version: {error}")
    if capsule_name(capsule) == b"dltensor_versioned":
        broken("max_version=(0, 8) gave a versioned capsule, whose major version is higher")


def producer_version_is_known(make: Make) -> None:
    export = Export(made(make, given(np.arange(6, dtype="f4"))[0]))
    if export.versioned and export.managed.major != 1:
        broken(f"max_version=(1, 3) gave version {export.managed.major}.{export.managed.minor}")
    if export.versioned and export.managed.minor > 50:
        broken(f"the version is 1.{export.managed.minor}, which does not exist")


def producer_version_is_own(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    for version in ((9, 0), (1, 250)):
        export = Export(tensor, max_version=version)
        if export.versioned and (export.managed.major, export.managed.minor) == version:
            broken(f"max_version={version} gave a capsule of version {version}")


def producer_copy_true(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    shared = Export(tensor)
    copy = Export(tensor, max_version=(1, 3), copy=True)
    if copy.start == shared.start or watch.holds(copy.start):
        broken("copy=True gave the memory of the tensor itself")
    if copy.values().tolist() != np.arange(6.0).tolist():
        broken("copy=True gave other values")


def producer_copy_true_layouts(make: Make) -> None:
    square = given(np.arange(12, dtype="f4").reshape(3, 4))[0]
    for array in (square, square.T, square[1:, ::2], square[2:]):
        wanted = array.tolist()
        try:
            copy = Export(make(array), max_version=(1, 3), copy=True)
        except Exception:
            continue
        if copy.values().tolist() != wanted:
            broken(f"copy=True of {wanted} gave {shown(copy.values(), wanted)}")


def producer_copy_true_device(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    lying(tensor, watch).release()
    arguments = {"max_version": (1, 3), "copy": True, "dl_device": tensor.__dlpack_device__()}
    try:
        copy = Export(tensor, **arguments)
    except Exception as error:
        skip(f"copy=True with dl_device is refused: {error}")
    if watch.holds(copy.start):
        broken("copy=True together with dl_device gave the memory of the tensor itself")


def producer_copy_true_is_apart(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    lying(tensor, watch).release()
    first = Export(tensor, max_version=(1, 3), copy=True)
    second = Export(tensor, max_version=(1, 3), copy=True)
    if first.start == second.start:
        broken("two calls with copy=True gave the same memory")
    array[:] = -1
    if first.values().tolist() != np.arange(6.0).tolist():
        broken("after copy=True the copy changed together with the tensor")
    first.release()
    if second.values().tolist() != np.arange(6.0).tolist():
        broken("the deleter of one copy changed another")


def producer_copy_false(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    try:
        first, second = (Export(tensor, max_version=(1, 3), copy=False) for _ in range(2))
    except ValueError:
        skip("copy=False is refused with ValueError")
    if first.start != second.start or first.flags & 2:
        broken("copy=False gave a copy")


def producer_copy_false_shares(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    lying(tensor, watch).release()
    try:
        capsule = tensor.__dlpack__(max_version=(1, 3), copy=False)
    except Exception as error:
        require_known(error)
        broken(f"no copy is necessary, and copy=False raised {type(error).__name__}: {error}")
    del capsule
    if not watch.holds(Export(tensor, max_version=(1, 3), copy=False).start):
        broken("copy=False gave a copy")


def producer_copy_none(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    try:
        shared = tensor.__dlpack__(max_version=(1, 3), copy=False)
    except Exception:
        skip("copy=False is refused, so that sharing may be impossible")
    del shared
    shared = Export(tensor, max_version=(1, 3), copy=False)
    for arguments in ({}, {"copy": None}):
        if Export(tensor, max_version=(1, 3), **arguments).start != shared.start:
            broken("the memory can be shared, and was copied though copy is None")


def producer_dl_device_own(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    start = lying(tensor, watch).start
    device = tensor.__dlpack_device__()
    try:
        capsule = tensor.__dlpack__(max_version=(1, 3), dl_device=device)
    except Exception as error:
        require_known(error)
        broken(f"its own device as dl_device raised {type(error).__name__}: {error}")
    del capsule
    export = Export(tensor, max_version=(1, 3), dl_device=device)
    if (export.managed.device_type, export.managed.device_id) != tuple(map(int, device)):
        broken("its own device as dl_device gave a capsule of another device")
    if export.start != start or export.flags & 2:
        broken("its own device as dl_device gave a copy")


def producer_dl_device_cpu(make: Make) -> None:
    values = np.arange(6.0)
    tensor = made(make, given(values)[0])
    Export(tensor).release()
    DLDeviceType: Any = enum.IntEnum("DLDeviceType", {"CPU": 1})
    for device in ((1, 0), (DLDeviceType(1), 0)):
        try:
            capsule = tensor.__dlpack__(max_version=(1, 3), dl_device=device)
        except Exception as error:
            require_known(error)
            broken(f"dl_device=(1, 0) raised {type(error).__name__}: {error}")
        del capsule
        export = Export(tensor, max_version=(1, 3), dl_device=device)
        if export.managed.device_type != 1 or export.values().tolist() != values.tolist():
            broken("dl_device=(1, 0) did not give the values on the CPU")


def producer_dl_device_other(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    Export(tensor).release()
    for device in ((8, 0), (17, 3)):
        if tensor.__dlpack_device__()[0] == device[0]:
            continue
        for copy in (None, False):
            arguments = {"max_version": (1, 3), "dl_device": device, "copy": copy}
            try:
                capsule = tensor.__dlpack__(**arguments)
            except BufferError:
                continue
            except Exception as error:
                require_known(error)
                if copy is False and isinstance(error, ValueError):
                    continue  # what copy=False cannot do, it may say in this way
                broken(f"dl_device={device} raised {type(error).__name__} ({error})")
            broken(f"dl_device={device} gave the capsule {capsule_name(capsule)!r}")
    try:
        export = Export(tensor, max_version=(1, 3), dl_device=(2, 0))
    except Exception:
        skip("ok: it refuses dl_device=(2, 0)")
    if export.managed.device_type != 2:
        broken("dl_device=(2, 0) gave a capsule of another device")


def producer_stream_none(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    if tensor.__dlpack_device__()[0] != 1:
        skip("the tensor is not on the CPU")
    Export(tensor).release()
    for stream in (0, 1, 2, 12345, "a stream"):
        try:
            tensor.__dlpack__(stream=stream, max_version=(1, 3))
        except Exception:
            continue
        broken(f"stream={stream!r} was taken for a tensor on the CPU")
