# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3
"""Objects of the process that threads use at once, for modules that are not compiled."""

from bridge.c10.python_api cimport make_immortal


def immortal(one: _T) -> _T:
    """Return `one`, kept for good: without the GIL, no thread counts its references to it.

    For what lives as long as the process and was created by this thread. The namespace of a module
    with a `__getattr__` is one: every ``module.function`` takes a reference to it, for which two
    threads would wait in turn.
    """
    make_immortal(one)
    return one

# pyi: _T = TypeVar("_T")
