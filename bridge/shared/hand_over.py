# SPDX-License-Identifier: Apache-2.0
"""Segments that go to other processes by multiprocessing, with the tensors that lie in them.

A process that is being started gets a descriptor, by multiprocessing's own means; so its segments
stay, whatever its parent does.

Everything else is a message in a queue or a pipe. It says which descriptor of the sender to open,
``/proc/PID/fd/N``, and no other process has to do anything: no thread, and a sender that is stopped
will do. Until the message has arrived the sender holds the segment. Whoever receives it says so in
the sender's receipts, a small memfd with a place for each message on its way; the sender looks
there when it sends again, and when garbage is collected.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import itertools
import os
import pickle
import sys
import threading
from functools import partial
from multiprocessing.context import get_spawning_popen
from multiprocessing.reduction import ForkingPickler
from struct import Struct
from weakref import WeakValueDictionary

from bridge import pickling
from bridge.annotation import Any
from bridge.at import Tensor
from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor
from bridge.integrations.after_import import after_import
from bridge.shared import handle
from bridge.shared.layout import token_of
from bridge.shared.names import fd_path
from bridge.shared.segment import adopt, find_segment, open_segment
from bridge.shared.tensors import impls, in_storage, row_of, segment_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from bridge.c10.tensor_impl import TensorImpl
    from bridge.shared.segment import Segment

_RECEIPT = Struct("<Q")
_FEW = 16  # messages on their way that are looked through each time
_MOST_INHERITED = 200  # descriptors for one process; a fork server takes 256


class Receipts:
    """The messages on their way from this process, each with the segment that it needs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fd = -1
        self._held: dict[int, tuple[int, Segment]] = {}  # by the place of the receipt
        self._free: list[int] = []
        self._numbers = itertools.count(1)
        self._next_look = _FEW

    def hold(self, segment: Segment) -> tuple[str, tuple[int, int], int, int]:
        """Hold a segment for a message; return where to write its receipt, and the receipt."""
        with self._lock:
            if len(self._held) < _FEW or len(self._held) >= self._next_look:
                self._look()
                self._next_look = 2 * len(self._held)
            if self._fd < 0:
                self._fd = os.memfd_create("bridge-receipts", os.MFD_CLOEXEC)
                gc.callbacks.append(self._on_collection)
            status = os.fstat(self._fd)
            place = self._free.pop() if self._free else len(self._held)
            number = next(self._numbers)
            self._held[place] = (number, segment)
            return fd_path(self._fd), (status.st_dev, status.st_ino), place, number

    def look(self) -> None:
        """Let go of the segments whose messages have arrived, unless another thread does it."""
        if self._held and self._lock.acquire(blocking=False):
            try:
                self._look()
            finally:
                self._lock.release()

    def _look(self) -> None:
        if not self._held:
            return
        found = os.pread(self._fd, _RECEIPT.size * (max(self._held) + 1), 0)
        arrived = []
        for (number,), place in zip(_RECEIPT.iter_unpack(found), itertools.count()):
            held = self._held.get(place)
            if held is not None and held[0] == number:
                arrived.append(self._held.pop(place))
                self._free.append(place)
        if not self._held:
            self._close()
        del arrived  # with the state complete: what goes now may run anything

    def _close(self) -> None:
        os.close(self._fd)
        self._fd = -1
        self._free.clear()
        self.stop()

    def _on_collection(self, phase: str, info: dict[str, int]) -> None:
        if phase == "stop":
            self.look()

    def stop(self) -> None:
        """Look for receipts no more when garbage is collected: the interpreter ends."""
        with contextlib.suppress(ValueError):
            gc.callbacks.remove(self._on_collection)

    def forget(self) -> None:
        """Hold nothing any more, without a lock: for a forked child, and at the end."""
        held, self._held = self._held, {}
        if self._fd >= 0:
            self._close()
        self._lock = threading.Lock()
        self._next_look = _FEW
        del held


receipts = Receipts()


def _handed(segment: Segment) -> tuple[Any, ...]:
    """Return the arguments of `_received`, which opens the segment in the receiving process."""
    token = token_of(segment)
    process: Any = get_spawning_popen()
    if process is None:
        return segment.file, token, fd_path(segment.fd), receipts.hold(segment)
    # one descriptor for each segment, however often it is among the arguments
    inherited = process.__dict__.setdefault("_bridge_inherited", {})
    if segment.file not in inherited:
        if len(inherited) >= _MOST_INHERITED:
            return segment.file, token, fd_path(segment.fd), receipts.hold(segment)
        inherited[segment.file] = process.DupFd(process.duplicate_for_child(segment.fd))
    return segment.file, token, inherited[segment.file], None


def _received(
    file: tuple[int, int], token: bytes, source: Any, receipt: tuple[Any, ...] | None
) -> Segment:
    """Return the Segment that was handed over. Raises FileNotFoundError: its sender is gone."""
    segment = find_segment(file)
    if segment is None or token_of(segment) != token:
        if receipt is None:
            segment = adopt(source.detach(), file)
        else:
            segment = open_segment(source, file, of_anyone=True)
        if token_of(segment) != token:
            raise FileNotFoundError(2, "The sender of the segment is gone", str(source))
    if receipt is not None:
        _acknowledge(*receipt)
    return segment


def _acknowledge(path: str, file: tuple[int, int], place: int, number: int) -> None:
    with contextlib.suppress(OSError):  # the sender has ended since
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            found = os.fstat(fd)
            if (found.st_dev, found.st_ino) == file:
                os.pwrite(fd, _RECEIPT.pack(number), place * _RECEIPT.size)
        finally:
            os.close(fd)


def _reduce_shared(shared: handle.Shared) -> tuple[Any, ...]:
    segment = shared._require_open("memory")
    return _shared, (_handed(segment), shared._parts())


def _shared(handed: tuple[Any, ...], parts: tuple[Any, ...]) -> handle.Shared:
    return handle.arrived(_received(*handed), *parts)


def _in_message(tensor: Any) -> tuple[Any, ...] | None:
    """Return the pickle's form of a tensor in a segment, for a message; None: it is elsewhere."""
    impl = tensor.unsafeGetTensorImpl()
    segment = segment_of(impl)
    if segment is None:
        return None
    types: list[Any] = []
    row = row_of(segment, impl, types)
    return _tensor, (type(tensor), _handed(segment), row, types[0])


# The tensors that have arrived, by their storage: those that share one share it here, too.
_storages: WeakValueDictionary[tuple[Any, ...], TensorImpl] = WeakValueDictionary()


def _tensor(cls: Any, handed: tuple[Any, ...], row: bytes, dtype: Any) -> Any:
    segment = _received(*handed)
    (impl,) = impls(segment, row, [dtype])
    storage = impl.get_storage()
    key = (segment.file, storage.data_ptr(), storage.nbytes(), storage.readonly)
    known = _storages.get(key)
    if known is None:
        _storages[key] = impl
    else:
        impl = in_storage(impl, known)
    return cls._of(impl)


def register(add: Callable[[type, Callable[[Any], Any]], None], protocol: int) -> None:
    """Add to a pickler, by its function `add`, how Shareds and tensors in segments are pickled."""

    def reduce_tensor(tensor: Any) -> Any:
        return _in_message(tensor) or tensor.__reduce_ex__(protocol)

    add(handle.Shared, _reduce_shared)
    add(Tensor, reduce_tensor)
    add(Caffe2Tensor, reduce_tensor)


def _register_with_loky(module: str) -> None:
    register(sys.modules[module].register, pickle.HIGHEST_PROTOCOL)


def prepare() -> None:
    """Register with multiprocessing's pickler, and with loky's when it is loaded."""
    register(ForkingPickler.register, pickle.DEFAULT_PROTOCOL)
    pickling.in_message = _in_message  # for subclasses, which no table has
    for module in ("loky.backend.reduction", "joblib.externals.loky.backend.reduction"):
        after_import(module, partial(_register_with_loky, module))
    os.register_at_fork(after_in_child=receipts.forget)
    atexit.register(receipts.stop)
