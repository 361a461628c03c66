# SPDX-License-Identifier: Apache-2.0
"""The prefix of the names of new nets, from the builder whose `with` block a thread is in."""

from __future__ import annotations

import threading


class _Prefixes(threading.local):
    def __init__(self) -> None:
        # Of the open blocks, the innermost last; an empty str outside of all.
        self.open = [""]


prefixes = _Prefixes()
