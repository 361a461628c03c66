# SPDX-License-Identifier: Apache-2.0
"""What older releases of torch lack, for error messages, ``bridge doctor`` and docs/versions.md."""

from __future__ import annotations

import re

# The release that brought it, by what it is.
SINCE = {
    "float8_e8m0fnu": (2, 7),
    "float4_e2m1fn_x2": (2, 8),
    "the bridge's functions in one graph of `torch.compile`, and in `torch.export`": (2, 9),
    "conversions by torch's C exchange table": (2, 10),
    "read-only exports (`ReadOnlyTensorWrapper`, `read_only=`)": (2, 14),
}


def lacking(version: str) -> dict[str, str]:
    """Return what a release of torch lacks and the release that has it, such as ``"2.9"``.

    >>> lacking("2.13.0+cpu")
    {'read-only exports (`ReadOnlyTensorWrapper`, `read_only=`)': '2.14'}
    """
    found = re.match(r"(\d+)\.(\d+)", version)
    if found is None:
        return {}
    release = int(found[1]), int(found[2])
    return {what: f"{since[0]}.{since[1]}" for what, since in SINCE.items() if release < since}
