# SPDX-License-Identifier: Apache-2.0
"""Names of `typing`, and NumPy's class of arrays, for annotations.

They are not evaluated when the program runs, and importing `typing` takes longer than importing
most parts of this package, as does NumPy. So the names stand for these where a type checker reads,
and for nothing else.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any as Any
    from typing import BinaryIO as BinaryIO
    from typing import ClassVar as ClassVar
    from typing import Final as Final
    from typing import NoReturn as NoReturn
    from typing import Self as Self

    import numpy

    Array = numpy.ndarray[Any, Any]
else:

    class Any:
        """Stands for a name of ``typing``."""

    Array = BinaryIO = ClassVar = Final = NoReturn = Self = Any
