# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any, Generic, TypeVar, overload

from typing_extensions import Self, disjoint_base

_T_co = TypeVar("_T_co", covariant=True)

class Count(int):
    def __call__(self) -> int: ...
    def __reduce__(self) -> tuple[Any, ...]: ...

@disjoint_base
class CallableAttribute(Generic[_T_co]):
    @overload
    def __get__(self, obj: None, cls: type[Any] | None = None, /) -> Self: ...
    @overload
    def __get__(self, obj: Any, cls: type[Any] | None = None, /) -> _T_co: ...
    @property
    def __objclass__(self) -> type[Any]: ...
    @property
    def __name__(self) -> str: ...
