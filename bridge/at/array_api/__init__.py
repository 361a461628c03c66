# SPDX-License-Identifier: Apache-2.0
"""The Python array API standard, 2024.12, over at.Tensor: what ``x.__array_namespace__()`` is.

The functions are torch's with the standard's names, arguments and type promotion; they run on the
memory of at.Tensors and give at.Tensors. New arrays are float32, complex64 or int64 on the CPU
unless the call says otherwise.

>>> from bridge import at
>>> x = at.arange(6).reshape(2, 3)
>>> xp = x.__array_namespace__()
>>> xp.sum(x, axis=1, keepdims=True)
at.Tensor([[ 3],
           [12]], dtype=int64)
"""

from __future__ import annotations

import math as _math

from bridge.at.array_api import (
    creation,
    dtypes,
    elementwise,
    manipulation,
    searching,
    statistics,
)
from bridge.at.array_api import fft as fft
from bridge.at.array_api import linalg as linalg
from bridge.at.array_api.dtypes import ArrayNamespaceInfo as _Info
from bridge.c10.type_meta import as_type as _as_type

__array_api_version__ = "2024.12"

e = _math.e
inf = _math.inf
nan = _math.nan
newaxis = None
pi = _math.pi

_functions = {
    name: getattr(module, name)
    for module, names in (
        (creation, creation.__all__),
        (dtypes, dtypes.FUNCTIONS),
        (elementwise, elementwise.__all__),
        (linalg, linalg.MAIN),
        (manipulation, manipulation.__all__),
        (searching, searching.__all__),
        (statistics, statistics.__all__),
    )
    for name in names
}
_types = {name: _as_type(name) for name in dtypes.NAMES}
globals().update(_functions, **_types)

__all__ = sorted({"e", "fft", "inf", "linalg", "nan", "newaxis", "pi", *_functions, *_types})


def __array_namespace_info__() -> _Info:
    """Return what the namespace can do: capabilities, devices, element types."""
    return _Info()
