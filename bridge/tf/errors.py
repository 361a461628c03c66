# SPDX-License-Identifier: Apache-2.0
"""The error of messages that are no tensor, and of tensors that are no message."""

from __future__ import annotations

from bridge.c10.errors import EnforceBufferError, EnforceNotMet, EnforceValueError

__all__ = ["TensorProtoError", "damaged"]


class TensorProtoError(EnforceBufferError, EnforceValueError):
    """Bytes that are no TensorProto, or a tensor that no TensorProto can hold.

    An EnforceNotMet, a BufferError (its memory is not to be had as a tensor's) and a ValueError
    (the bytes say something that cannot be).
    """


def damaged(message: str, error: EnforceNotMet) -> TensorProtoError:
    """The error of bytes that are no such message, as their reader says."""
    return TensorProtoError(
        f"The bytes are no {message}, or were damaged. {error.message}",
        "bridge.tf",
        condition=error.condition,
    )
