# SPDX-License-Identifier: Apache-2.0
"""The tools of the cases: DLPack by ctypes, from its documents.

Nothing here imports the bridge's exchange. The source of the tools that a case uses becomes a part
of the program that shows a broken rule (`bridge.conform.programs`), so that each name of a module
here is unique, functions are short, and a module imports others by ``from … import``.
"""

from __future__ import annotations
