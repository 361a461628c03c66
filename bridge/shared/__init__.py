# SPDX-License-Identifier: Apache-2.0
"""Across processes: one copy of a tensor, or of a model, that every process of a user sees.

    segment     memory in a file without a name, sealed by the kernel, mapped once in a process
    tensors     tensors in a segment
    layout      the contents of a segment: a safetensors file, and a description
    value       from tensors and trees to these contents, and back
    names       links by which other processes find it
    handle      share, attach, Shared
    hand_over   through multiprocessing

`bridge.share` is the function, so this package has another name.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    raise ImportError(
        "bridge.share, bridge.attach and bridge.Shared need the memory of POSIX systems, which "
        "Windows lacks. Between processes there, tensors go by pickle, which copies them."
    )

from bridge.shared.hand_over import prepare
from bridge.shared.handle import Shared, attach, share

__all__ = ["Shared", "attach", "share"]

prepare()
