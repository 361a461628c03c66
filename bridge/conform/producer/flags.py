# SPDX-License-Identifier: Apache-2.0
"""The flags of a versioned export."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export
from bridge.conform.kit.given import given, made
from bridge.conform.kit.lying import lying
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def producer_flag_read_only(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    array.flags.writeable = False
    tensor = made(make, array)
    export = lying(tensor, watch)
    if not export.versioned:
        skip("an old capsule has no flags")
    if not export.flags & 1:
        broken("memory of a read-only array is exported without DLPACK_FLAG_BITMASK_READ_ONLY")


def producer_flag_read_only_needless(make: Make, to_numpy: Callable[[Any], Any]) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    tensor = made(make, array)
    export = lying(tensor, watch)
    seen = to_numpy(tensor)
    if not watch.holds(seen.ctypes.data) or not seen.flags.writeable:
        skip("the tensor itself cannot be seen to be writable")
    if export.flags & 1:
        broken("a tensor that can be written is exported with DLPACK_FLAG_BITMASK_READ_ONLY")


def producer_flag_not_copied(make: Make) -> None:
    array, watch = given(np.arange(6, dtype="f4"))
    export = lying(made(make, array), watch)
    if export.flags & 2:
        broken("memory that is shared is exported with DLPACK_FLAG_BITMASK_IS_COPIED")


def producer_flag_copied(make: Make) -> None:
    tensor = made(make, given(np.arange(6, dtype="f4"))[0])
    try:
        export = Export(tensor, max_version=(1, 3), copy=True)
    except Exception as error:
        skip(f"copy=True raised {type(error).__name__}: {error}")
    if not export.versioned:
        skip("an old capsule has no flags")
    if not export.flags & 2:
        broken("copy=True gave a copy without DLPACK_FLAG_BITMASK_IS_COPIED")


def producer_flag_copied_unasked(make: Make) -> None:
    square = given(np.arange(12, dtype="f4").reshape(3, 4))[0]
    copies = 0
    for array in (
        square,
        square.T,
        square[::-1],
        square[:, ::2],
        np.broadcast_to(square, (2, 3, 4)),
    ):
        try:
            tensor = make(array)
            tensor.__dlpack__(max_version=(1, 3))
        except Exception:
            continue
        first, second = Export(tensor), Export(tensor)
        copies += first.start != second.start
        if first.start != second.start and first.versioned and not first.flags & 2:
            broken("each export is a new copy, without DLPACK_FLAG_BITMASK_IS_COPIED")
    if not copies:
        skip("two exports share memory: it made no copy")


def producer_flag_padded(make: Make) -> None:
    for dtype in ("float64", "int8", "bool"):
        try:
            export = Export(make(given(np.ones(6, dtype))[0]))
        except Exception:
            continue
        if export.flags & 4:
            broken(f"{dtype} is exported with DLPACK_FLAG_BITMASK_IS_SUBBYTE_TYPE_PADDED")


def producer_flag_padded_set(make: Make) -> None:
    try:
        import ml_dtypes
    except ImportError:
        skip("ml_dtypes, which has such elements, is not installed")
    array, watch = given(np.ones(6, getattr(ml_dtypes, "float4_e2m1fn", "V1")))
    tensor = made(make, array)
    try:
        tensor.__dlpack__(max_version=(1, 3))
    except Exception as error:
        skip(f"__dlpack__ refused: {type(error).__name__}: {error}")
    export = lying(tensor, watch)
    if export.managed.bits == 4 and not export.flags & 4:
        broken("elements of 4 bits, each in a byte of its own, are exported as packed")


def producer_flags_unknown(make: Make) -> None:
    for values in (np.arange(6.0), np.arange(6) > 2, np.arange(24.0).reshape(2, 3, 4)):
        try:
            export = Export(make(given(values)[0]))
        except Exception:
            continue
        if export.flags >> 3:
            broken(f"the flags are {export.flags:#b}; only the lowest three bits have a meaning")
