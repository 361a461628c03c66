# SPDX-License-Identifier: Apache-2.0
"""Element types that a producer writes: code, bits, lanes; and the types that it must refuse."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.export import Export, calls
from bridge.conform.kit.given import given, made
from bridge.conform.kit.verdict import broken, skip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    Make = Callable[[Any], Any]


def types_written(make: Make, to_numpy: Any, wanted: dict[str, tuple[int, int]]) -> None:
    """Compare the types that are written for arrays with the wanted codes and bits, by dtype."""
    refused = []
    for name, (code, bits) in wanted.items():
        try:
            tensor = make(given(np.array([0, 1, 1], name))[0])
            asks = calls_or_none(tensor)
            if to_numpy is not None and np.asarray(to_numpy(tensor)).dtype != name:
                asks = []  # make made another type of it
        except Exception:
            asks = []
        if not asks:
            refused.append(name)
        for call in asks:
            export = Export(tensor, **call)
            managed = export.managed
            if (managed.code, managed.bits) != (code, bits):
                broken(
                    f"{name} has code {managed.code} and {managed.bits} bits, not {code}, {bits}"
                )
    if len(refused) == len(wanted):
        skip(f"it takes none of {', '.join(refused)}")


def calls_or_none(tensor: Any) -> list[dict[str, Any]]:
    """Return the arguments of the ways to ask a producer, none where it refuses."""
    try:
        tensor.__dlpack__(max_version=(1, 3))
    except BufferError:
        return []
    except TypeError:
        return calls(tensor)
    return calls(tensor)


def producer_type_int(make: Make, to_numpy: Any = None) -> None:
    types_written(make, to_numpy, {f"int{bits}": (0, bits) for bits in (8, 16, 32, 64)})


def producer_type_uint(make: Make, to_numpy: Any = None) -> None:
    types_written(make, to_numpy, {f"uint{bits}": (1, bits) for bits in (8, 16, 32, 64)})


def producer_type_float(make: Make, to_numpy: Any = None) -> None:
    types_written(make, to_numpy, {f"float{bits}": (2, bits) for bits in (16, 32, 64)})


def producer_type_complex(make: Make, to_numpy: Any = None) -> None:
    types_written(make, to_numpy, {f"complex{bits}": (5, bits) for bits in (64, 128)})


def producer_type_bool(make: Make, to_numpy: Any = None) -> None:
    types_written(make, to_numpy, {"bool": (6, 8)})


def producer_type_small_floats(make: Make, to_numpy: Any = None) -> None:
    try:
        import ml_dtypes
    except ImportError:
        skip("ml_dtypes, which has such elements, is not installed")
    codes = {"bfloat16": (4, 16), "float8_e3m4": (7, 8), "float8_e4m3": (8, 8)}
    codes |= {"float8_e4m3b11fnuz": (9, 8), "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8)}
    codes |= {"float8_e5m2": (12, 8), "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8)}
    codes |= {"float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4)}
    # Those that NumPy takes for elements of a kind of its own are not told apart.
    there = {
        name: codes[name]
        for name in codes
        if hasattr(ml_dtypes, name) and np.dtype(getattr(ml_dtypes, name)).kind == "V"
    }
    types_written(make, to_numpy, there)


def producer_type_lanes(make: Make) -> None:
    for name in ("float64", "float32", "int8", "bool", "complex128"):
        try:
            tensor = make(given(np.array([0, 1, 1], name))[0])
            exports = [Export(tensor, **call) for call in calls(tensor)]
        except Exception:
            continue
        for export in exports:
            lanes = export.managed.lanes
            if lanes != 1:
                broken(f"{name} is exported with {lanes} lanes")


def producer_type_byte_order(make: Make) -> None:
    values = np.arange(6.0)
    tensor = made(make, values.astype(values.dtype.newbyteorder()))
    try:
        tensor.__dlpack__(max_version=(1, 3))
    except Exception:
        skip("it refuses, as it should")
    if Export(tensor).values().tolist() != values.tolist():
        broken("an array in the other byte order was exported as if it were in this one")


def producer_refuses_by_buffer_error(make: Make) -> None:
    tried = 0
    records = np.zeros(3, [("a", "i4"), ("b", "f8")])
    for array in (np.array([None, "text"], object), np.array(["a", "bc"]), records):
        try:
            tensor = make(array)
        except Exception:
            continue
        tried += 1
        try:
            capsule = tensor.__dlpack__(max_version=(1, 3))
        except BufferError:
            continue
        except Exception as error:
            broken(
                f"elements of type {array.dtype}: {type(error).__name__}, not BufferError: {error}"
            )
        if capsule is None:
            broken(f"elements of type {array.dtype}: __dlpack__ gave None")
        export = Export(tensor)
        managed = export.managed
        broken(f"elements of type {array.dtype} were exported as code {managed.code}")
    if not tried:
        skip("make refuses objects, strings and records")
