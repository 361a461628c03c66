# SPDX-License-Identifier: Apache-2.0
"""Containers, their contents, and how a container of the same kind is made.

Exact dicts, lists and tuples are in `bridge.trees.walk`; all others are here.
"""

from __future__ import annotations

import operator
import sys
from array import array
from collections import OrderedDict, UserDict, defaultdict, deque
from collections.abc import Callable, Iterable
from types import SimpleNamespace

from bridge.annotation import Any
from bridge.c10.handle import Handle
from bridge.exchange.protocols import class_has_door, object_has_door
from bridge.exchange.registry import adapter_of

# Values that are leaves of no library. They occur anywhere, so that being the same object says
# nothing.
SCALARS = (int, float, complex, str, bytes, type(None), type)
# Classes with memory of their own that stay as they are inside a tree; alone they are tensors.
BUFFERS = (bytearray, memoryview, array)
# Registered as nodes by torch itself, in some versions.
_LEAVES = (UserDict, deque, SimpleNamespace, *SCALARS, *BUFFERS)


class Node:
    """One container: its children, the step to each, and how to make one of other children.

    children: the objects in it. steps: for each, its part of the path and its key, as in
    ``(".weight", "weight")``. rebuild: ``rebuild(children)`` returns a new container of the kind.
    """

    __slots__ = ("children", "rebuild", "steps")

    def __init__(
        self,
        children: list[Any],
        steps: list[tuple[str, Any]],
        rebuild: Callable[[list[Any]], Any],
    ) -> None:
        self.children = children
        self.steps = steps
        self.rebuild = rebuild


def node_of(x: Any) -> Node | None:
    """Return the Node of `x`; None if it is a leaf."""
    cls = type(x)
    if _is_leaf_class(cls):
        return None
    torch = _torch_nodes()
    if cls in torch:
        return _torch_node(x, torch[cls])
    if _is_jax_node(x):
        return _jax_node(x)
    if not _is_container_class(cls) or class_has_door(x):
        return None
    if isinstance(x, dict):
        return _mapping(x)
    if isinstance(x, list):
        return _list(x)
    if isinstance(x, tuple):
        return _tuple(x)
    return _dataclass(x)


def is_tree(x: Any) -> bool:
    """Return whether `x` is a container, so that its parts are converted.

    >>> from collections import deque
    >>> from bridge.trees import is_tree
    >>> is_tree({}), is_tree(b"ab"), is_tree(deque())
    (True, False, False)
    """
    cls = type(x)
    if cls is dict or cls is list or cls is tuple:
        return True
    if _is_leaf_class(cls):
        return False
    return (
        cls in _torch_nodes()
        or _is_jax_node(x)
        or (_is_container_class(cls) and not class_has_door(x))
    )


def is_tensor(x: Any) -> bool:
    """Return whether a leaf has a tensor's memory, so that doors take it or say why not."""
    return is_single(type(x)) or class_has_door(x) or object_has_door(x)


def keeps(x: Any) -> bool:
    """Return whether a leaf stays as it is in a tree, whether it has memory or not.

    >>> from bridge.trees import keeps
    >>> keeps(b"ab"), keeps(5), keeps(None), keeps({1})
    (True, True, True, False)
    """
    return isinstance(x, (*SCALARS, *BUFFERS, *_numpy_class("generic")))


def is_single(cls: type) -> bool:
    """Return whether objects of the class are tensors of the bridge, torch or NumPy."""
    return issubclass(cls, (Handle, *_numpy_class("ndarray"), *_torch_class()))


def is_always_single(x: Any) -> bool:
    """Return whether no object of the class of `x`, a leaf that lives on, will be a tree."""
    cls = type(x)
    module = sys.modules.get(cls.__module__)
    if getattr(module, cls.__name__, None) is not cls:
        return False  # it may be deleted, and a reference would keep it
    if _is_leaf_class(cls) or keeps(x):
        return True
    adapter = adapter_of(cls)
    return adapter is not None and adapter.includes(x)


def _is_leaf_class(cls: type) -> bool:
    return cls in _LEAVES or is_single(cls)


def _is_container_class(cls: type) -> bool:
    return issubclass(cls, (dict, list, tuple)) or hasattr(cls, "__dataclass_fields__")


def _numpy_class(name: str) -> tuple[type, ...]:
    numpy = sys.modules.get("numpy")
    cls = getattr(numpy, name, None)
    return () if cls is None else (cls,)


def _torch_class() -> tuple[type, ...]:
    torch = sys.modules.get("torch")
    cls = getattr(torch, "Tensor", None)
    return () if cls is None else (cls,)


# The registries of the frameworks.


def _torch_nodes() -> Any:
    """Return torch's table of registered classes; empty where torch is not loaded."""
    return getattr(sys.modules.get("torch.utils._pytree"), "SUPPORTED_NODES", ())


def _torch_node(x: Any, found: Any) -> Node:
    children, context = found.flatten_fn(x)
    children = list(children)
    with_keys = getattr(found, "flatten_with_keys_fn", None)
    steps = [(f"[{i}]", i) for i in range(len(children))]
    if with_keys is not None:
        keys = [key for key, _ in with_keys(x)[0]]
        if len(keys) == len(children):
            steps = [(str(key), _key(key)) for key in keys]
    if isinstance(x, tuple) and all(type(child) is int for child in children):
        # a torch.Size, of which torch would make a tuple
        return Node(
            children,
            steps,
            lambda new: (
                x if all(map(operator.is_, new, children)) else found.unflatten_fn(new, context)
            ),
        )
    return Node(children, steps, lambda new: found.unflatten_fn(new, context))


def _is_jax_node(x: Any) -> bool:
    tree_util = sys.modules.get("jax.tree_util")
    return tree_util is not None and not tree_util.all_leaves((x,))


def _jax_node(x: Any) -> Node:
    tree_util = sys.modules["jax.tree_util"]
    entered = False

    def stops(child: Any) -> bool:
        nonlocal entered
        below, entered = entered, True
        return below

    found, tree = tree_util.tree_flatten_with_path(x, is_leaf=stops)
    steps = [(tree_util.keystr(path), _key(path[-1])) for path, _ in found]
    return Node([child for _, child in found], steps, lambda new: tree.unflatten(new))


def _key(entry: Any) -> Any:
    """Return the key, index or name in a key object of torch or JAX."""
    for name in ("key", "idx", "name"):
        if hasattr(entry, name):
            return getattr(entry, name)
    return str(entry)


# Containers of Python.


def _mapping(x: Any) -> Node:
    # (the methods of a class of the user's may do something else)
    base = next(cls for cls in (OrderedDict, dict) if isinstance(x, cls))
    items = list(base.items(x))
    keys = [key for key, _ in items]

    def rebuild(values: list[Any]) -> Any:
        new = _blank(x)
        if isinstance(x, defaultdict):
            defaultdict.__init__(new, x.default_factory)
        for key, value in zip(keys, values, strict=True):
            base.__setitem__(new, key, value)
        _copy_state(
            x, new, {key: (old, value) for (key, old), value in zip(items, values, strict=True)}
        )
        return new

    return Node([value for _, value in items], [(key_text(key), key) for key in keys], rebuild)


def _list(x: Any) -> Node:
    def rebuild(values: list[Any]) -> Any:
        new = _blank(x)
        list.extend(new, values)
        _copy_state(x, new)
        return new

    items = list(list.__iter__(x))
    return Node(items, [(f"[{i}]", i) for i in range(len(items))], rebuild)


def _tuple(x: Any) -> Node:
    cls: Any = type(x)
    items = list(tuple.__iter__(x))
    fields = getattr(cls, "_fields", None)
    steps: list[tuple[str, Any]] = [(f"[{i}]", i) for i in range(len(items))]
    if isinstance(fields, tuple) and len(fields) == len(items):
        steps = [(f".{name}", name) for name in fields]

    def rebuild(values: list[Any]) -> Any:
        if all(new is old for new, old in zip(values, items, strict=True)):
            return x  # immutable, and the same
        if hasattr(cls, "n_sequence_fields"):  # a structure of C
            return cls(values)
        new = tuple.__new__(cls, values)
        _copy_state(x, new)
        return new

    return Node(items, steps, rebuild)


def _dataclass(x: Any) -> Node:
    from dataclasses import fields

    missing = object()
    found = [(field.name, getattr(x, field.name, missing)) for field in fields(x)]
    found = [(name, value) for name, value in found if value is not missing]

    def rebuild(values: list[Any]) -> Any:
        # (its __init__ may check, convert or count; frozen ones refuse setattr)
        new = _blank(x)
        _copy_state(x, new)
        for (name, _), value in zip(found, values, strict=True):
            object.__setattr__(new, name, value)
        return new

    return Node([value for _, value in found], [(f".{name}", name) for name, _ in found], rebuild)


def key_text(key: Any) -> str:
    """Return the part of a path for a key of a dict."""
    try:
        return f"[{key!r}]"
    except Exception:  # noqa: BLE001  of a __repr__ of any class
        return f"[{object.__repr__(key)}]"


def _blank(x: Any) -> Any:
    """Return a new object of the class of `x`, without calling its ``__init__``."""
    cls: Any = type(x)
    try:
        return cls.__new__(cls)
    except TypeError as error:
        raise TypeError(
            f"A {cls.__qualname__} cannot be made anew, since its __new__ takes arguments: "
            f"{error}. Register the class with torch.utils._pytree.register_pytree_node or "
            "jax.tree_util.register_pytree_node."
        ) from error


def _copy_state(x: Any, new: Any, items: dict[Any, tuple[Any, Any]] | None = None) -> None:
    """Set the attributes of `x` on `new`; an attribute that mirrors an item gets the new item."""
    state = getattr(x, "__dict__", None)
    if state is x:
        new.__dict__ = new
    elif state is not None:
        for name, value in state.items():
            old, item = items.get(name, (None, None)) if items else (None, None)
            new.__dict__[name] = item if value is old and value is not None else value
    for name in _slots(type(x)):
        try:
            value = getattr(x, name)
        except AttributeError:
            continue
        object.__setattr__(new, name, value)


def _slots(cls: type) -> Iterable[str]:
    """Yield the names of the attributes that classes have in ``__slots__``."""
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in ("__dict__", "__weakref__"):
                private = name.startswith("__") and not name.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{name}" if private else name
