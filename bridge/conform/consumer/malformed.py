# SPDX-License-Identifier: Apache-2.0
"""Structures that no producer may write: a consumer refuses them, or reads foreign memory."""

from __future__ import annotations

import numpy as np

from bridge.annotation import Any
from bridge.conform.kit.source import Source, imported
from bridge.conform.kit.verdict import broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    FromDLPack = Callable[..., Any]


def malformed_refused(from_dlpack: FromDLPack, what: str, **fields: Any) -> None:
    """End the case as broken if a consumer takes a malformed structure."""
    imported(from_dlpack, Source(np.arange(6.0)))
    for version in ((1, 3), None):
        source = Source(np.arange(6.0), version=version, deleter=None, **fields)
        try:
            tensor = from_dlpack(source)
        except Exception:
            continue
        size = getattr(tensor, "size", None)
        if (
            fields.get("shape")
            and isinstance(size, int)
            and 0 <= size <= 6
            and "data" not in fields
        ):
            continue
        broken(f"a tensor with {what} was taken")


def consumer_malformed_overflow(from_dlpack: FromDLPack) -> None:
    for shape in ((2**62, 4), (2**32, 2**32), (2**61, 8), (2**63 - 1, 2**63 - 1)):
        malformed_refused(
            from_dlpack,
            f"shape {shape}, whose product overflows",
            shape=shape,
            ndim=2,
            strides=(1, 1),
        )


def consumer_malformed_bytes_overflow(from_dlpack: FromDLPack) -> None:
    for shape in ((2**62,), (2**61,), (2**63 - 1,)):
        malformed_refused(
            from_dlpack,
            f"shape {shape} of float64, whose bytes overflow",
            shape=shape,
            strides=(1,),
        )


def consumer_malformed_negative_size(from_dlpack: FromDLPack) -> None:
    for shape in ((-1,), (2, -3), (-2, -3)):
        malformed_refused(
            from_dlpack, f"shape {shape}", shape=shape, ndim=len(shape), strides=(1,) * len(shape)
        )


def consumer_malformed_negative_ndim(from_dlpack: FromDLPack) -> None:
    for ndim in (-1, -(2**31)):
        malformed_refused(from_dlpack, f"ndim={ndim}", ndim=ndim)


def consumer_malformed_many_dimensions(from_dlpack: FromDLPack) -> None:
    for ndim in (1_000, 10_000):
        ones = (1,) * ndim
        malformed_refused(
            from_dlpack, f"ndim={ndim}", ndim=ndim, strides=ones, data=None, shape=ones
        )


def consumer_malformed_null_data(from_dlpack: FromDLPack) -> None:
    malformed_refused(from_dlpack, "6 elements and data NULL", data=None)
