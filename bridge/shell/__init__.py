# SPDX-License-Identifier: Apache-2.0
"""The commands of the shell, ``bridge`` and ``python -m bridge``; see `bridge.shell.main`.

Each command is a module with two functions: `add_to(commands)` declares its arguments, and
`run(arguments)` does it and returns the exit status. The modules of a command are imported by
`run`, so that ``bridge --help`` answers at once.
"""

from __future__ import annotations
