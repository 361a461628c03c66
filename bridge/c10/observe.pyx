# SPDX-License-Identifier: Apache-2.0
# cython: language_level=3, boundscheck=False, wraparound=False
"""How conversions tell bridge.audit and bridge.no_copy what they do.

A conversion, where it is called::

    if observed and outermost():
        return watched("to_numpy", x, "numpy.ndarray", to_numpy, (x,))

calls itself again, now under way, so that what it does inside belongs to it and is not
a conversion of its own. And where bytes are about to be copied::

    if observed:
        copying(nbytes, "its elements are not aligned")

which raises BufferError if that is forbidden. Copies outside of a conversion, those of
clone() for one, concern nobody.

Who listens, bridge.see.contexts, is loaded when the first context is made.
"""


class Label(str):
    """The name of a source that is no tensor object: ``"blob 'x'"``."""

    __slots__ = ()


# The reason where the caller wants a copy.
ASKED = "copy=True was asked for"
# The reason where another than the bridge copied; it says so, whether or not it used the bridge.
PRODUCER = "its producer gave a copy"

cdef int observed = 0
cdef object _outermost = None
cdef object _watched = None
cdef object _shared = None
cdef object _copying = None


def listen(outermost, watched, shared, copying):
    """Say what the functions below call while `observed` is not 0 (bridge.see.contexts does)."""
    global _outermost, _watched, _shared, _copying
    _outermost = outermost
    _watched = watched
    _shared = shared
    _copying = copying


def count(int by):
    """Count `by` more open contexts; the caller holds a lock."""
    global observed
    observed += by


cpdef bint outermost() except -1:
    """Whether somebody watches this context, and no conversion is under way in it."""
    return observed != 0 and _outermost()


cdef object watched(
    str call, object source, str target, object function, tuple args, dict kwargs=None,
):
    """Call ``function(*args, **kwargs)``, the conversion `call` of `source` to `target`."""
    return _watched(call, source, target, function, args, kwargs or {})


def watch(call, source, target, function, *args, **kwargs):
    """The same as `watched`, for callers in Python."""
    return _watched(call, source, target, function, args, kwargs)


cdef int shared(str call, object source, str target, int64_t nbytes) except -1:
    """Tell of a conversion that never copies, and is done."""
    if _outermost():
        _shared(call, source, target, nbytes)
    return 0


cpdef int copying(int64_t nbytes, str reason) except -1:
    """Tell that the conversion under way is about to copy; BufferError if that is forbidden."""
    if observed:
        _copying(nbytes, reason)
    return 0
