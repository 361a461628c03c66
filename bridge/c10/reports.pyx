# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""Reports of conversions and copies, for bridge.audit and bridge.no_copy.

A conversion begins with::

    if is_observed() and outermost():
        return run_observed("to_numpy", x, "numpy.ndarray", to_numpy, (x,))

which calls the function again, now with a conversion under way: conversions inside it are part of
it and not reported on their own. Before bytes are copied::

    if is_observed():
        report_copy(nbytes, "its elements are not aligned")

which raises BufferError inside no_copy(). Copies outside of a conversion, as by clone(), are
not reported.

bridge.see.contexts registers itself as the observer when the first context is created, so it is
loaded only if it is used.
"""

from bridge.c10.python_api cimport set_word


class Label(str):
    """The name of a source that is not a tensor object: ``"blob 'x'"``."""

    __slots__ = ()


# The reason if the caller asked for a copy.
ASKED = "copy=True was asked for"  # pyi: str
# The reason if the producer copied, not the bridge.
PRODUCER = "its producer returned a copy"  # pyi: str
# The reason of the copy that bridge.share is asked for; no_copy() allows it, and the copies on the
# way there, for the byte order and aligned elements.
INTO_SHARED = "it was asked for, once, in shared memory"  # pyi: str

cdef int observed = 0
cdef object _observer = None


def register_observer(observer: Any) -> None:
    """Register the object that the functions below call while `observed` is not 0.

    bridge.see.contexts has its class.
    """
    global _observer
    _observer = observer


def count(int by) -> None:
    """Add `by` to the number of open contexts; the caller holds a lock."""
    global observed
    set_word(&observed, observed + by)


cpdef bint outermost() except -1:
    """Return whether this context is observed and no conversion is under way in it."""
    return is_observed() and _observer.outermost()


cdef object run_observed(
    str call, object source, str target, object function, tuple args, dict kwargs=None,
):
    """Call ``function(*args, **kwargs)`` as the conversion `call` of `source` to `target`."""
    return _observer.run(call, source, target, function, args, kwargs or {})


def observe_call(
    call: str, source: object, target: str, function: Callable[..., _T], *args: Any, **kwargs: Any
) -> _T:
    """Call `function` as `run_observed` does, for callers in Python."""
    return _observer.run(call, source, target, function, args, kwargs)


def record_together(function: Callable[..., _T], *args: Any) -> _T:
    """Return ``function(*args)``; the conversions in it are recorded only if it succeeds."""
    return _observer.together(function, args)


cdef int report_shared(str call, object source, str target, int64_t nbytes) except -1:
    """Report a finished conversion that never copies."""
    if _observer.outermost():
        _observer.shared(call, source, target, nbytes)
    return 0


cpdef int report_copy(int64_t nbytes, str reason) except -1:
    """Report that the conversion under way will copy. Raises BufferError inside no_copy()."""
    if is_observed():
        _observer.copying(nbytes, reason)
    return 0

# pyi: _T = TypeVar("_T")
