# SPDX-License-Identifier: Apache-2.0
"""``python -m bridge``: the same as the command ``bridge``."""

from __future__ import annotations

import sys

from bridge.shell.main import main

if __name__ == "__main__":
    sys.exit(main())
