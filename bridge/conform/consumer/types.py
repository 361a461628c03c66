# SPDX-License-Identifier: Apache-2.0
"""How a consumer reads element types: code, bits, lanes."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.given import is_shown, shown, values_of
from bridge.conform.kit.source import Source, imported
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]
    ToNumPy = Callable[[Any], Any]


def types_read(from_dlpack: FromDLPack, to_numpy: ToNumPy, arrays: dict[str, Any]) -> None:
    """Compare the values that are read with the arrays, by dtype; the consumer may refuse some."""
    refused = []
    for name, values in arrays.items():
        wanted = np.array(values, name)
        for version in ((1, 3), None):
            try:
                tensor = from_dlpack(Source(wanted, version=version))
            except Exception as error:
                refused.append(f"{name} ({type(error).__name__})")
                continue
            found = values_of(to_numpy, tensor)
            if found.dtype != wanted.dtype:
                broken(f"{name} became {found.dtype}")
            if found.tolist() != wanted.tolist():
                broken(f"{name}: {wanted.tolist()} became {shown(found, wanted)}")
    if len(refused) == 2 * len(arrays):
        skip(f"it takes none of {', '.join(arrays)}")


def type_refused(from_dlpack: FromDLPack, to_numpy: Any, what: str, **fields: Any) -> None:
    """End the case as broken if a consumer takes elements that it can only misread.

    One that takes them as they are, and shows no values, misreads nothing.
    """
    imported(from_dlpack, Source(np.arange(6.0)))
    try:
        tensor = from_dlpack(Source(np.arange(64.0), shape=(4,), ndim=1, strides=(1,), **fields))
    except Exception:
        return
    if to_numpy is None or is_shown(to_numpy, tensor):
        broken(f"{what} were taken")


def consumer_type_int(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    arrays = {f"int{n}": [1, -(2 ** (n - 1)), 2 ** (n - 1) - 1, -3] for n in (8, 16, 32, 64)}
    types_read(from_dlpack, to_numpy, arrays)


def consumer_type_uint(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    types_read(from_dlpack, to_numpy, {f"uint{n}": [1, 2**n - 1, 7] for n in (8, 16, 32, 64)})


def consumer_type_float(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    arrays = {"float16": [1.5, -2.0, 0.0], "float32": [1.5, -1e30, 2.0**-60]}
    arrays["float64"] = [1.5, -1e300, 1 / 3]
    types_read(from_dlpack, to_numpy, arrays)


def consumer_type_complex(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    types_read(from_dlpack, to_numpy, {f"complex{n}": [1 + 2j, -3j, 4] for n in (64, 128)})


def consumer_type_bool(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    types_read(from_dlpack, to_numpy, {"bool": [True, False, True]})


def consumer_type_bfloat16(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    source = Source(np.array([0x3FC0, 0xC000, 0x4040], "u2"), code=4, bits=16)
    found = values_of(to_numpy, imported(from_dlpack, source))
    if found.dtype.kind in "iu":
        skip(f"to_numpy shows bfloat16 as {found.dtype}")
    if found.astype("f4").tolist() != [1.5, -2.0, 3.0]:
        broken(f"bfloat16 [1.5, -2, 3] became {found.dtype} of other values")


def consumer_type_unknown(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    for code in (99, 18, 255):
        type_refused(from_dlpack, to_numpy, f"elements of the unknown code {code}", code=code)


def consumer_type_opaque(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    type_refused(from_dlpack, to_numpy, "opaque handles, on which nobody agreed,", code=3)


def consumer_type_bits(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    for kind, code, bits in (("float", 2, 24), ("int", 0, 24), ("complex", 5, 48), ("uint", 1, 7)):
        type_refused(from_dlpack, to_numpy, f"elements {kind} of {bits} bits", code=code, bits=bits)


def consumer_type_bool_bits(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    for bits in (1, 32):
        type_refused(from_dlpack, to_numpy, f"elements bool of {bits} bits", code=6, bits=bits)


def consumer_type_small_bits(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    for code, bits in ((17, 8), (17, 6), (15, 8), (16, 4)):
        type_refused(
            from_dlpack, to_numpy, f"elements of code {code} with {bits} bits", code=code, bits=bits
        )


def consumer_type_lanes(from_dlpack: FromDLPack, to_numpy: ToNumPy) -> None:
    for lanes in (2, 4):
        source = Source(np.arange(8.0), lanes=lanes, shape=(8 // lanes,), strides=(1,))
        found = values_of(to_numpy, imported(from_dlpack, source))
        if found.size != 8 or found.reshape(-1).tolist() != np.arange(8.0).tolist():
            broken(f"{8 // lanes} elements of {lanes} lanes were read as {found.size} numbers")


def consumer_type_no_lanes(from_dlpack: FromDLPack, to_numpy: Any = None) -> None:
    type_refused(from_dlpack, to_numpy, "elements without lanes", lanes=0)
