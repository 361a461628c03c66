# SPDX-License-Identifier: Apache-2.0
"""The error of bytes that are not a valid TensorProto, and of tensors without one."""

from __future__ import annotations

from bridge.c10.errors import EnforceBufferError, EnforceNotMet, EnforceValueError


class TensorProtoError(EnforceBufferError, EnforceValueError):
    """Bytes that are not a valid TensorProto, or a tensor that a TensorProto cannot hold.

    It is an EnforceNotMet, a BufferError (there is no tensor to share) and a ValueError.
    """


def damaged(message: str, caller: str, error: EnforceNotMet) -> TensorProtoError:
    """Return the error of bytes that cannot be parsed as `message`; `error` is the parser's."""
    return TensorProtoError(
        f"The bytes are not a {message}, or are damaged. {error.message}",
        caller,
        condition=error.condition,
    )
