# SPDX-License-Identifier: Apache-2.0
"""What every refusal of the workspace has in common, and a stand-in for a blob's name."""

from __future__ import annotations

from typing import Any

from bridge import c10


class BlobReference:
    """What stands for a blob's name in Caffe2's nets; it is known by the name of its class."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __str__(self) -> str:
        return self._name


def refused(
    error: BaseException, *words: str, kind: type[BaseException] = c10.EnforceNotMet
) -> Any:
    """Check that `error` is an EnforceNotMet, of the kind `kind` too, and says all of `words`."""
    assert isinstance(error, c10.EnforceNotMet), type(error)
    assert isinstance(error, kind), type(error).__mro__
    for word in words:
        assert word in str(error), (word, str(error))
    return error
