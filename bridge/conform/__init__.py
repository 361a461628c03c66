# SPDX-License-Identifier: Apache-2.0
"""Does a library keep to DLPack? Rules as data, and a kit that checks producers and consumers.

``check("torch")``, or ``check(subject)`` with an object of one's own, returns a `Report`; see
``docs/conform.md``. The kit makes and reads capsules by ctypes, from the specification: nothing of
the bridge's exchange is used, so that the bridge is checked like any other library.
"""

from __future__ import annotations

from bridge.conform.checking import check
from bridge.conform.report import Report, Result
from bridge.conform.rule import Rule
from bridge.conform.rules import RULES
from bridge.lazy import listed as _listed

__all__ = ["RULES", "Report", "Result", "Rule", "check"]
__dir__ = _listed(__name__)
