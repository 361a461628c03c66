# SPDX-License-Identifier: Apache-2.0
"""Exports that lie in the memory the subject was given, which rules on memory need."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.conform.kit.export import Export
from bridge.conform.kit.given import Watch
from bridge.conform.kit.verdict import skip


def lying(tensor: Any, watch: Watch, **arguments: Any) -> Export:
    """Return an export; if it lies elsewhere or has no deleter, the case is skipped."""
    export = Export(tensor, **arguments)
    if not watch.holds(export.start):
        export.release()
        skip("the export does not lie in the given array")
    if not export.managed.deleter:
        skip("the deleter is NULL, which is allowed")
    return export
