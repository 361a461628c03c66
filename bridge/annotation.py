# SPDX-License-Identifier: Apache-2.0
"""`Any` of `typing`, for annotations.

They are not evaluated when the program runs, and importing `typing` takes longer than importing
most parts of this package. So the name stands for typing's where a type checker reads, and for
nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
else:

    class Any:
        """Stands for ``typing.Any``."""
