# SPDX-License-Identifier: Apache-2.0
"""`share`, `attach` and the handle `Shared`."""

from __future__ import annotations

import os
import pickle
import time

from bridge.annotation import Any
from bridge.at import Tensor
from bridge.c10.reports import Label, observe_call, outermost
from bridge.shared import names
from bridge.shared.layout import Description, read
from bridge.shared.segment import Segment, create, open_segment
from bridge.shared.tensors import impls, row_of, segment_of
from bridge.shared.value import Source, Specs, Tensors, build

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import TracebackType

    from bridge.c10.tensor_impl import TensorImpl

_MOST_IN_A_LINK = 2000  # bytes of a Description
_POLL = 0.002  # seconds between two looks for a name


class Shared:
    """A tensor, or a tree of tensors, in memory that other processes attach.

    Returned by `bridge.share` and `Shared.empty`. It goes through multiprocessing's queues, pipes
    and arguments by itself, and arrives attached. In a ``with`` statement it is closed at the end.

    >>> import bridge
    >>> with bridge.Shared.empty(((2, 3), "float32")) as shared:
    ...     x = shared.value
    ...     shared.nbytes, shared.writable, x.tolist()
    (24, True, [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]])
    """

    __slots__ = (
        "__weakref__",
        "_description",
        "_home",
        "_link",
        "_name",
        "_nbytes",
        "_part",
        "_segment",
        "_token",
        "_value",
        "_writable",
    )

    _description: Description | None
    _home: str
    _link: names.Link | None
    _name: str | None
    _nbytes: int
    _part: Segment | None
    _segment: Segment | None
    _token: bytes
    _value: Any
    _writable: bool

    def __init__(self) -> None:
        raise TypeError("A Shared is made by bridge.share(x) or bridge.Shared.empty(spec).")

    @classmethod
    def _of(
        cls,
        segment: Segment,
        token: bytes,
        description: Description | None,
        value: Any,
        nbytes: int,
        home: str,
        name: str | None,
    ) -> Shared:
        """Return a handle. description: the value, if it is not all of the segment."""
        self = cls.__new__(cls)
        self._segment = segment
        self._token = token
        self._description = description
        self._value = value
        self._nbytes = nbytes
        self._writable = segment.open_to_all
        self._home = home
        self._name = name
        self._link = None
        self._part = None
        return self

    @staticmethod
    def empty(spec: Any, *, name: str | None = None, writable: bool = True) -> Shared:
        """Return a Shared of zeros.

        `spec`: ``(dims, T)``, sizes and an element type, or a tree of such pairs. A pair is one if
        its first item is an int or a sequence of ints. `name`, `writable`: as in `bridge.share`.

        Raises TypeError: no pair in `spec`. BufferError: a type whose elements are not plain
        memory. EnforceNotMet, also a ValueError: negative sizes. MemoryError: no room.
        FileExistsError: the name is in use.

        >>> import bridge
        >>> shared = bridge.Shared.empty({"w": ((2, 2), "float32"), "b": (2, "int8")})
        >>> shared.value["b"].tolist(), shared.nbytes
        ([0, 0], 18)
        """
        if name is not None:
            names.checked(name)
        return _stored(Specs(spec), name, writable)

    @property
    def value(self) -> Any:
        """The at.Tensor, or the tree of them, on the shared memory; the same object each time."""
        self._require_open("value")
        return self._value

    @property
    def name(self) -> str | None:
        """The name that `bridge.attach` finds it by; None if it has none."""
        return self._name

    @property
    def nbytes(self) -> int:
        """The bytes of the tensors, each counted once."""
        return self._nbytes

    @property
    def writable(self) -> bool:
        """Whether every process may write; the one that made it always may."""
        return self._writable

    @property
    def path(self) -> str:
        """The path of the safetensors file that the memory is, for all processes of the user.

        It names a descriptor of the process that made the segment; once that has closed it, of this
        process.
        """
        segment = self._segment
        if segment is None or _is_there(self._home, segment.file):
            return self._home
        return names.fd_path(segment.fd)

    def close(self) -> None:
        """Release the memory and the name. Tensors that were taken from it stay valid."""
        link, self._link = self._link, None
        if link is not None:
            link.release()
        self._segment = None
        self._value = None
        self._part = None

    def _require_open(self, what: str) -> Segment:
        segment = self._segment
        if segment is None:
            raise ValueError(f"This Shared is closed, so it has no {what} any more.")
        return segment

    def _parts(self) -> tuple[Any, ...]:
        """Return all that another process needs to make the handle, except the segment."""
        return self._token, self._description, self._nbytes, self._home, self._name

    def __enter__(self) -> Shared:
        self._require_open("value")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None and link.pid:  # else the interpreter is ending, or it was closed
            link.release()

    def __reduce__(self) -> tuple[Any, ...]:
        segment = self._require_open("memory")
        place = names.Place(self.path, segment.file, self._token)
        return referred, (place.text(), self._parts())

    def __repr__(self) -> str:
        closed = ", closed" if self._segment is None else ""
        return (
            f"bridge.Shared(name={self._name!r}, nbytes={self._nbytes}, path={self.path!r}, "
            f"writable={self._writable}{closed})"
        )


def share(x: Any, *, name: str | None = None, writable: bool = False) -> Shared:
    """Return a Shared with the elements of `x` in memory that other processes attach.

    `x`: a tensor of any library in host memory, or a tree of them: dicts, lists, tuples, named
    tuples, dataclasses, and classes that are registered as nodes with torch or JAX. Other leaves
    than tensors are pickled along. Elements are copied once. A value wholly in one segment is
    shared again without a copy if that segment is as `writable` as asked.

    `name`: for `attach`; ASCII letters, digits, ``.``, ``_`` and ``-``. It is given back when the
    handle is closed or deleted, or the process ends. `writable`: every process may write; otherwise
    only this one and its forked children may, and the kernel sees to it.

    The memory is freed when the last process has dropped its last tensor, view and handle.

    Raises TypeError: no tensor in `x`. BufferError: memory of a device, strings or objects, a
    tensor that requires grad, and all that `from_dlpack` refuses; the message names the leaf.
    ValueError: no valid name. FileExistsError: the name is in use. MemoryError: no room.

    >>> import bridge
    >>> shared = bridge.share({"weight": bridge.at.ones(2), "step": 7})
    >>> shared.value["weight"].tolist(), shared.value["step"], shared.nbytes
    ([1.0, 1.0], 7, 8)
    >>> bridge.attach(shared)["weight"] is shared.value["weight"]
    True
    """
    if name is not None:
        names.checked(name)
    if outermost():
        result: Shared = observe_call("share", x, "bridge.Shared", _share, x, name, writable)
        return result
    return _share(x, name, writable)


def _share(x: Any, name: str | None, writable: bool) -> Shared:
    if isinstance(x, Shared):
        x = x.value
    source = Tensors(x)
    segment = _common_segment(source.impls, writable)
    if segment is not None:
        return _shared_again(source, segment, name)
    return _stored(source, name, writable)


def attach(source: str | Shared, *, timeout: float = 0.0) -> Any:
    """Return the tensor, or the tree, that was shared: at.Tensors on the same memory.

    `source`: a name, a ``path`` of a Shared, or a Shared. Read-only unless it was shared as
    writable, or this process made it. `timeout`: seconds to wait until there is such a name.

    Raises FileNotFoundError: there is none, or its process is gone. TimeoutError: not after a
    `timeout` above 0 either. PermissionError: it is another user's. BufferError: the file is not a
    segment, or damaged. ValueError: a name that none can have, or a closed Shared.

    >>> import bridge
    >>> with bridge.share(bridge.at.ones(3), name="docs-attach"):
    ...     bridge.attach("docs-attach").tolist()
    [1.0, 1.0, 1.0]
    """
    if isinstance(source, Shared):
        return source.value
    if isinstance(source, os.PathLike):
        source = os.fspath(source)
    if not isinstance(source, str):
        raise TypeError(
            "attach takes a name, a path or a Shared, not "
            f"{type(source).__name__}; bridge.share(x) makes a Shared of a tensor."
        )
    if timeout != 0.0:
        _check_timeout(timeout)
    if "/" not in source:
        names.checked(source)
    if outermost():
        label = Label(f"segment {source!r}")
        return observe_call("attach", label, "at.Tensor", _attach, source, timeout)
    return _attach(source, timeout)


def _check_timeout(timeout: Any) -> None:
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout is a number of seconds, not {type(timeout).__name__}.")
    if not timeout >= 0:
        raise ValueError(f"timeout is a number of seconds from 0 on, not {timeout}.")


def _attach(source: str, timeout: float) -> Any:
    if "/" in source:
        segment = open_segment(source)
        return build(segment, read(segment)[0])
    if not timeout:
        return _attach_name(source)
    end = time.monotonic() + timeout
    while True:
        try:
            return _attach_name(source)
        except (FileNotFoundError, PermissionError) as error:
            left = end - time.monotonic()
            if left > 0:
                time.sleep(min(_POLL, left))
                continue
            if isinstance(error, PermissionError):
                raise
            raise TimeoutError(
                f"No segment had the name {source!r} within {timeout:g} seconds."
            ) from error


def _attach_name(name: str) -> Any:
    place = names.find(name)
    try:
        segment = open_segment(place.path, place.file)
    except PermissionError:
        # the PID is of another user's process by now: the file of the maker would be ours
        raise FileNotFoundError(
            2, f"The process that gave the name {name!r} is gone", place.path
        ) from None
    description, token = read(segment)
    if token != place.token:
        raise FileNotFoundError(2, f"The process that gave the name {name!r} is gone", place.path)
    return build(segment, description if place.part is None else _part(place.part))


def _part(part: bytes) -> Description:
    """Return the Description that a link has, or says where it is."""
    found = pickle.loads(part)
    if isinstance(found, Description):
        return found
    path, file = found
    segment = open_segment(path, file)
    described: Description = pickle.loads(segment.read(0, segment.size))
    return described


def _is_there(path: str, file: tuple[int, int]) -> bool:
    try:
        found = os.stat(path)
    except OSError:
        return False
    return (found.st_dev, found.st_ino) == file


def _common_segment(impls: Sequence[TensorImpl], writable: bool) -> Segment | None:
    """Return the segment that all tensors lie in, if it is writable as asked for; else None."""
    first = segment_of(impls[0])
    if first is None or first.open_to_all is not bool(writable):
        return None
    for impl in impls[1:]:
        segment = segment_of(impl)
        if segment is None or segment.file != first.file:
            return None
    return first


def _shared_again(source: Tensors, segment: Segment, name: str | None) -> Shared:
    """Return another handle of tensors that lie in `segment`."""
    whole, token = read(segment)
    types: list[Any] = []
    rows = [row_of(segment, impl, types) for impl in source.impls]
    table, tree = b"".join(rows), source.tree()
    description: Description | None = Description(table, types, tree)
    if table == whole.table and types == whole.types and tree == whole.tree:
        description = None
    tensors = [Tensor._of(impl) for impl in impls(segment, table, types)]
    nbytes = sum(leaf.nbytes for leaf in source.leaves if leaf.twin is None)
    return _named(
        Shared._of(
            segment, token, description, source.rebuilt(tensors), nbytes,
            names.fd_path(segment.fd), name,
        )
    )  # fmt: skip


def _stored(source: Source, name: str | None, writable: bool) -> Shared:
    """Return a Shared of a new segment."""
    made = source.plan(bool(writable))
    segment = create(made.size)
    segment.write(0, made.front)
    source.write(segment, made)
    segment.seal(bool(writable))
    description = made.description
    tensors = list(map(Tensor._of, impls(segment, description.table, description.types)))
    return _named(
        Shared._of(
            segment, made.token, None, source.rebuilt(tensors), made.nbytes,
            names.fd_path(segment.fd), name,
        )
    )  # fmt: skip


def _named(made: Shared) -> Shared:
    """Return a new handle after its name has been given to it."""
    name = made._name
    segment = made._segment
    if name is None or segment is None:
        return made
    part = None
    if made._description is not None:
        part = pickle.dumps(made._description, 5)
        if len(part) > _MOST_IN_A_LINK:
            made._part = create(len(part), "bridge-part")
            made._part.write(0, part)
            made._part.seal(False)
            part = pickle.dumps((names.fd_path(made._part.fd), made._part.file), 5)
    place = names.Place(names.fd_path(segment.fd), segment.file, made._token, part)
    made._link = names.claim(name, place)
    return made


def referred(text: str, parts: tuple[Any, ...]) -> Shared:
    """Return the Shared that a pickle refers to. Raises FileNotFoundError: its maker is gone."""
    return arrived(names.Place.of(text).open(of_anyone=True), *parts)


def arrived(
    segment: Segment,
    token: bytes,
    description: Description | None,
    nbytes: int,
    home: str,
    name: str | None,
) -> Shared:
    """Return the handle of a segment that came from another process."""
    value = build(segment, read(segment)[0] if description is None else description)
    return Shared._of(segment, token, description, value, nbytes, home, name)
