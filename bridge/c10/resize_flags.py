# SPDX-License-Identifier: Apache-2.0
"""The process-wide flags that ``Resize`` obeys."""

from __future__ import annotations

from bridge.c10.errors import EnforceTypeError, EnforceValueError

_INT64_MAX = 2**63 - 1


class _Flags:
    """Caffe2's two memory flags; assigned values are checked and take effect at once.

    Follows caffe2_keep_on_shrink and caffe2_max_keep_on_shrink_memory,
    c10/core/TensorImpl.cpp, PyTorch 1.8.1.
    """

    __slots__ = ("_keep_on_shrink", "_max_keep_on_shrink_memory")

    def __init__(self) -> None:
        self._keep_on_shrink = True
        self._max_keep_on_shrink_memory = _INT64_MAX

    @property
    def caffe2_keep_on_shrink(self) -> bool:
        """Whether ``Resize`` to fewer elements keeps the buffer."""
        return self._keep_on_shrink

    @caffe2_keep_on_shrink.setter
    def caffe2_keep_on_shrink(self, value: bool) -> None:
        if value not in (True, False):
            raise EnforceTypeError(
                f"caffe2_keep_on_shrink is True or False, not {value!r}.", "FLAGS"
            )
        self._keep_on_shrink = bool(value)

    @property
    def caffe2_max_keep_on_shrink_memory(self) -> int:
        """The number of unused bytes above which ``Resize`` drops the buffer."""
        return self._max_keep_on_shrink_memory

    @caffe2_max_keep_on_shrink_memory.setter
    def caffe2_max_keep_on_shrink_memory(self, value: int) -> None:
        if isinstance(value, bool) or not isinstance(value, int):
            raise EnforceTypeError(
                f"caffe2_max_keep_on_shrink_memory is a number of bytes, not {value!r}.", "FLAGS"
            )
        if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
            raise EnforceValueError(
                f"caffe2_max_keep_on_shrink_memory is an int64, not {value}.", "FLAGS"
            )
        self._max_keep_on_shrink_memory = value

    def __repr__(self) -> str:
        return (
            f"FLAGS(caffe2_keep_on_shrink={self._keep_on_shrink}, "
            f"caffe2_max_keep_on_shrink_memory={self._max_keep_on_shrink_memory})"
        )


FLAGS = _Flags()
