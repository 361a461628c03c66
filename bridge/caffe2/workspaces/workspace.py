# SPDX-License-Identifier: Apache-2.0
"""Workspaces: blobs by name, and which workspace is the current one."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

from bridge.c10 import EnforceNotMet, observe
from bridge.c10.errors import EnforceAssertionError, EnforceKeyError, EnforceTypeError
from bridge.caffe2.base.names import name_of
from bridge.caffe2.base.text import listed
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.core import CurrentBlobs, put
from bridge.caffe2.blobs.feed import feed_refusal, is_array, put_on
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

    from bridge.caffe2.execution.runnable_net import RunnableNet

__all__ = [
    "BlobMap",
    "Workspace",
    "created",
    "deserialize_named",
    "feed_failure",
    "feed_named",
    "fetch_int8_named",
    "fetch_named",
    "find_named",
    "found_blob",
    "name_of",
    "serialize_named",
    "state",
    "visible_names",
]


class BlobMap(Mapping[str, Blob]):
    """The blobs that a workspace sees by name: a live view, for reading, in the order of names."""

    __slots__ = ("_workspace",)

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace

    def __getitem__(self, name: Any) -> Blob:
        return find_named(self._workspace, name, "Workspace.blobs")

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and found_blob(self._workspace, name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(visible_names(self._workspace))

    def __len__(self) -> int:
        return len(visible_names(self._workspace))

    def __repr__(self) -> str:
        return repr(dict(self))


class _WorkspaceType(type):
    """The class of `Workspace`, for what are attributes of that class."""

    @property
    def current(cls) -> Workspace:
        """The current workspace; the same object until a switch or a reset."""
        return state.workspace

    @property
    def current_blobs(cls) -> BlobMap:
        """The blobs of the current workspace by name."""
        return state.workspace.blobs


class Workspace(metaclass=_WorkspaceType):
    """Blobs by name, apart from those of every other workspace.

    ``Workspace()`` makes one that has no name, ``Workspace(parent)`` one that sees the blobs of
    another besides its own: what is made in it is its own, what is there already is that.
    ``Workspace.current`` is the one that the functions of this package act on,
    ``Workspace.current_blobs`` its blobs.

    Raises EnforceNotMet, also a TypeError: `parent` is no Workspace.

    Follows Workspace, caffe2/core/workspace.h, and its Python class in
    caffe2/python/pybind_state.cc, PyTorch 1.8.1.

    >>> from bridge.caffe2.workspace import Workspace
    >>> ws = Workspace()
    >>> ws.feed_blob("x", b"text"), ws.fetch_blob("x"), ws.blobs
    (True, b'text', {'x': <Blob that holds a string of 4 bytes>})
    """

    __slots__ = ("__weakref__", "_blobs", "_failed_position", "_nets", "_parent", "_root_folder")

    _blobs: dict[str, Blob]
    _root_folder: str
    # The nets that were created here, by name.
    _nets: dict[str, RunnableNet]
    # Its blobs are seen, too: a plan's step may run in a workspace of its own.
    _parent: Workspace | None
    # Where in its net the operator was that failed last; 0, too, where none did.
    _failed_position: int

    def __init__(self, parent: Workspace | None = None) -> None:
        if parent is not None and not isinstance(parent, Workspace):
            raise EnforceTypeError(
                f"A workspace sees the blobs of another Workspace, not of a "
                f"{type(parent).__name__}.",
                "Workspace",
            )
        self._blobs = {}
        self._root_folder = "." if parent is None else parent._root_folder
        self._nets = {}
        self._parent = parent
        self._failed_position = 0

    if TYPE_CHECKING:
        # Type checkers look here first and not at the metaclass: one attribute for both ways.
        current: ClassVar[Workspace]
        current_blobs: ClassVar[BlobMap]
    else:

        @property
        def current(self) -> Workspace:
            """The current workspace, as ``Workspace.current``."""
            return state.workspace

        @property
        def current_blobs(self) -> BlobMap:
            """The blobs of the current workspace, as ``Workspace.current_blobs``."""
            return state.workspace.blobs

    @property
    def blobs(self) -> BlobMap:
        """The blobs by name, a live view."""
        return BlobMap(self)

    @property
    def nets(self) -> dict[str, RunnableNet]:
        """The nets that were created here, by name: a new dict each time."""
        return dict(sorted(self._nets.items()))

    def create_net(self, net: Any, overwrite: bool = False) -> RunnableNet:
        """Create a net as `CreateNet` does, and return it; it has ``run()``.

        Raises EnforceNotMet as `CreateNet`.
        """
        from bridge.caffe2.base.messages import as_message
        from bridge.caffe2.execution.nets import create_net

        caller = "Workspace.create_net"
        return create_net(self, as_message(net, "NetDef", caller), overwrite, caller)

    def run(self, obj: Any) -> None:
        """Run an operator, a net or a plan, each once: a ``core`` object or a message.

        Raises EnforceNotMet as `RunOperatorOnce`, `RunNetOnce` and `RunPlan`; what is none of these
        is also a ValueError.
        """
        from bridge.caffe2.execution.running import run_any

        run_any(self, obj)

    def _last_failed_op_net_position(self) -> int:
        """Where in its net the operator was that failed last; 0, too, where none did."""
        return self._failed_position

    def create_blob(self, name: Any) -> Blob:
        """Return the blob `name`; make an empty one if there is none.

        Raises EnforceNotMet: `name` is no name.
        """
        return created(self, name_of(name, "Workspace.create_blob"))

    def feed_blob(self, name: Any, value: Any, device_option: Any = None) -> bool:
        """Feed the blob `name`, as `FeedBlob` does."""
        return feed_named(self, name, value, device_option, "Workspace.feed_blob")

    def fetch_blob(self, name: Any) -> Any:
        """Copy what the blob `name` holds, as `Blob.fetch` does.

        Raises EnforceNotMet: no such blob (also a KeyError), or it holds nothing to fetch.
        """
        return fetch_named(self, name, "Workspace.fetch_blob")

    def fetch_int8_blob(self, name: Any) -> Int8Tensor:
        """Copy what the quantized blob `name` holds, as `FetchInt8Blob` does."""
        return fetch_int8_named(self, name, "Workspace.fetch_int8_blob")

    def has_blob(self, name: Any) -> bool:
        """Return whether there is a blob `name`. Raises EnforceNotMet: `name` is no name."""
        return found_blob(self, name_of(name, "Workspace.has_blob")) is not None

    def remove_blob(self, name: Any) -> None:
        """Forget the blob `name`, if there is one; whoever holds it can go on using it.

        Raises EnforceNotMet: `name` is no name.
        """
        self._blobs.pop(name_of(name, "Workspace.remove_blob"), None)


class _State(CurrentBlobs):
    """The workspaces that have names, and the current one: one state for the whole process."""

    __slots__ = ("lock", "name", "workspace", "workspaces")

    name: str
    workspace: Workspace
    # `blobs`, inherited, are those of `workspace`, for the functions that are called most.
    workspaces: dict[str, Workspace]
    # Held while the above change; by the same thread again where what ends then runs Python.
    lock: threading.RLock

    def __init__(self) -> None:
        self.workspaces = {}
        self.lock = threading.RLock()
        self.put("default", Workspace())

    def put(self, name: str, workspace: Workspace) -> None:
        """Make `workspace` the one of that name, and the current one."""
        self.workspaces[name] = workspace
        self.name = name
        self.enter(workspace)

    def enter(self, workspace: Workspace) -> None:
        """Make `workspace` the current one, whatever the name."""
        self.workspace = workspace
        self.blobs = workspace._blobs


state = _State()


def find_named(workspace: Workspace, name: Any, caller: str) -> Blob:
    """Return the blob `name`. Raises EnforceNotMet, also a KeyError: there is none."""
    text = name_of(name, caller)
    blob = found_blob(workspace, text)
    if blob is not None:
        return blob
    here = f"workspace {state.name!r}" if workspace is state.workspace else "the workspace"
    others = [other for other, ws in list(state.workspaces.items()) if text in ws._blobs]
    hint = f" There is one in the workspace {listed(others)}: SwitchWorkspace." if others else ""
    raise EnforceKeyError(
        f"There is no blob {text!r} in {here}, which has {listed(workspace._blobs)}.{hint} Feed it "
        "first by FeedBlob(name, value), or make an empty one by CreateBlob(name).",
        caller,
        condition="HasBlob(name)",
    )


def found_blob(workspace: Workspace, name: str) -> Blob | None:
    """Return the blob that the workspace sees by `name`; None: there is none."""
    blob = workspace._blobs.get(name)
    if blob is None and workspace._parent is not None:
        return found_blob(workspace._parent, name)
    return blob


def visible_names(workspace: Workspace) -> list[str]:
    """List the names of the blobs that a workspace sees, sorted."""
    names = set(workspace._blobs)
    while workspace._parent is not None:
        workspace = workspace._parent
        names.update(workspace._blobs)
    return sorted(names)


def created(workspace: Workspace, name: str) -> Blob:
    """Return the blob that operators of the workspace mean by `name`; an empty new one if none."""
    blob = found_blob(workspace, name)
    return workspace._blobs.setdefault(name, Blob()) if blob is None else blob


def feed_named(
    workspace: Workspace, name: Any, value: Any, device_option: Any, caller: str
) -> bool:
    """Feed the blob `name`; one that is new gets its name when it holds the value."""
    text = name_of(name, caller)
    if observe.outermost() and not isinstance(value, (bytes, str)):
        target = f"blob {text!r}"
        return observe.watch(
            caller, value, target, feed_named, workspace, name, value, device_option, caller
        )
    if device_option is None and state.device_scopes and is_array(value):
        from bridge.caffe2.definitions.scopes import CurrentDeviceScope

        device_option = CurrentDeviceScope()
    blob = found_blob(workspace, text)
    known = blob is not None
    if blob is None:
        blob = Blob()
    try:
        if device_option is None:
            put(blob, value)
        else:
            put_on(blob, value, device_option)
    except Exception as cause:
        raise feed_failure(text, value, cause, caller) from cause
    if not known:
        workspace._blobs.setdefault(text, blob)
    return True


def feed_failure(name: Any, value: Any, cause: Exception, caller: str) -> EnforceNotMet:
    """Make the EnforceNotMet of a feed that failed. Raises it, too, if the name is at fault."""
    return feed_refusal(f"Blob {name_of(name, caller)!r}", value, caller, cause)


def fetch_named(workspace: Workspace, name: Any, caller: str) -> Any:
    """Copy what the blob `name` holds."""
    return find_named(workspace, name, caller)._fetch(name, caller)


def fetch_int8_named(workspace: Workspace, name: Any, caller: str) -> Int8Tensor:
    """Copy what the quantized blob `name` holds.

    Raises EnforceNotMet, also an AssertionError: it holds something else.
    """
    blob = find_named(workspace, name, caller)
    if not isinstance(blob._object, Int8TensorCPU):
        raise EnforceAssertionError(
            f"{blob._called(name)}, no quantized tensor; use FetchBlob.",
            caller,
        )
    fetched: Int8Tensor = blob._fetch(name, caller)
    return fetched


def serialize_named(workspace: Workspace, name: Any, caller: str) -> bytes:
    """Write what the blob `name` holds as Caffe2's message."""
    from bridge.caffe2.blobs.serialize import serialize  # not needed by most: loaded here

    text = name_of(name, caller)
    return serialize(find_named(workspace, text, caller), text, caller, text)


def deserialize_named(workspace: Workspace, name: Any, data: Any, caller: str) -> None:
    """Make the blob `name` hold what a message says; one that is new gets its name after that."""
    from bridge.caffe2.blobs.deserialize import deserialize

    text = name_of(name, caller)
    known = found_blob(workspace, text)
    blob = Blob() if known is None else known
    deserialize(blob, data, f"Blob {text!r}", caller)
    if known is None:
        workspace._blobs.setdefault(text, blob)
