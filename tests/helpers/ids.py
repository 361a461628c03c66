# SPDX-License-Identifier: Apache-2.0
"""Names of parametrized cases that are the same in every process."""

from __future__ import annotations

import re
from typing import Any


def shown(value: Any) -> str:
    """Return the repr of `value` without addresses, for the `ids` of pytest.

    The processes of a parallel run compare the names of the tests that they collected.
    """
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))
