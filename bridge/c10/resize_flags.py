# SPDX-License-Identifier: Apache-2.0
"""The process-wide flags that ``Resize`` obeys."""

from __future__ import annotations

from bridge.c10.errors import EnforceTypeError, EnforceValueError

_INT64_MAX = 2**63 - 1


class _Flags:
    """Caffe2's two memory flags; assigned values are checked and take effect at once.

    caffe2_keep_on_shrink: whether ``Resize`` to fewer elements keeps the buffer.
    caffe2_max_keep_on_shrink_memory: the number of unused bytes above which ``Resize`` drops it.

    Follows caffe2_keep_on_shrink and caffe2_max_keep_on_shrink_memory,
    c10/core/TensorImpl.cpp, PyTorch 1.8.1.
    """

    __slots__ = ("caffe2_keep_on_shrink", "caffe2_max_keep_on_shrink_memory")

    caffe2_keep_on_shrink: bool
    caffe2_max_keep_on_shrink_memory: int

    def __init__(self) -> None:
        self.caffe2_keep_on_shrink = True
        self.caffe2_max_keep_on_shrink_memory = _INT64_MAX

    def __setattr__(self, name: str, value: object) -> None:
        if name == "caffe2_keep_on_shrink":
            if value not in (True, False):
                raise EnforceTypeError(f"{name} is True or False, not {value!r}.", "FLAGS")
            value = bool(value)
        elif name == "caffe2_max_keep_on_shrink_memory":
            if isinstance(value, bool) or not isinstance(value, int):
                raise EnforceTypeError(f"{name} is a number of bytes, not {value!r}.", "FLAGS")
            if not -_INT64_MAX - 1 <= value <= _INT64_MAX:
                raise EnforceValueError(f"{name} is an int64, not {value}.", "FLAGS")
        super().__setattr__(name, value)

    def __repr__(self) -> str:
        return (
            f"FLAGS(caffe2_keep_on_shrink={self.caffe2_keep_on_shrink}, "
            f"caffe2_max_keep_on_shrink_memory={self.caffe2_max_keep_on_shrink_memory})"
        )


FLAGS = _Flags()
