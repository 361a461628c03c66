# SPDX-License-Identifier: Apache-2.0
"""The libraries that objects come from and go to by name, and the classes of each.

A library is registered by `register`: by a user, by an entry point of the group
``bridge.adapters``, or by a module of a folder that `add_folder` was told of. Modules of the folder
are loaded when the name, or a class of the package of that name, is first met.

An entry point is a callable without arguments that calls `bridge.register`. It is called when its
name is asked for, or when an object of a class of its package is first met: of the package that it
is named after, of the one that it is defined in, or of one that was installed with it. Before an
object is refused, all are called.

torch and NumPy, whose tensors are converted in tens of nanoseconds, are compiled and not here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Container, Iterable
from importlib import import_module
from weakref import WeakKeyDictionary

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# What to install if a module of the folder cannot be loaded, if it is not its own name.
_PACKAGES = {
    "cupy": "cupy-cuda12x",
    "mlx": "mlx[cpu]",
    "paddle": "paddlepaddle",
    "tvm_ffi": "apache-tvm-ffi",
    "warp": "warp-lang",
}


class Adapter:
    """A registered library.

    name: as in ``bridge.convert(x, name)``. classes, dotted: its types, as classes and as names; a
    name ending in ``.*`` means all classes of the package. importer, exporter: see `register`.
    import_takes_copy: it is ``importer(x, copy)``, which returns a TensorImpl, or None for the
    general protocols, and reports copies itself. export_takes_copy: it is ``exporter(x, copy)``,
    where `x` is anything that can be imported, and reports copies itself. prefers_buffer: objects
    that export a buffer of plain numbers are imported by it, without `importer`. placer:
    ``placer(x, like, copy)`` returns an object of the library where `like` is, for devices that
    DLPack does not tell apart.
    """

    __slots__ = (
        "classes", "dotted", "export_takes_copy", "exporter", "import_takes_copy", "importer",
        "name", "placer", "prefers_buffer",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        types: tuple[type | str, ...],
        importer: Callable[..., Any] | None,
        exporter: Callable[..., Any] | None,
        *,
        import_takes_copy: bool = False,
        export_takes_copy: bool = False,
        prefers_buffer: bool = False,
        placer: Callable[..., Any] | None = None,
    ) -> None:
        self.name = name
        self.classes: WeakKeyDictionary[type, bool] = WeakKeyDictionary()
        for cls in types:
            if isinstance(cls, type):
                self.classes[cls] = True
        self.dotted = tuple(cls for cls in types if isinstance(cls, str))
        self.importer = importer
        self.exporter = exporter
        self.import_takes_copy = import_takes_copy
        self.export_takes_copy = export_takes_copy
        self.prefers_buffer = prefers_buffer
        self.placer = placer

    def match(self, cls: type) -> int:
        """Return whether `cls` itself is one of the types: 2; 1: only by the name of its package.

        Imports nothing.
        """
        if cls in self.classes:
            return 2
        found = 0
        for dotted in self.dotted:
            if dotted.endswith(".*"):
                found = found or int(f"{cls.__module__}.".startswith(dotted[:-1]))
            elif _is_named(cls, dotted):
                return 2
        return found

    def includes(self, x: Any) -> bool:
        """Return whether `x` is an object of one of the types, or of a class derived from one."""
        return any(self.match(cls) == 2 for cls in type(x).__mro__)


_adapters: dict[str, Adapter] = {}
_on_change: list[Callable[[], object]] = []
# The folder of modules that `add_folder` was told of: package, path, names that only import.
_folder: tuple[str, Iterable[str], Container[str]] = ("", (), ())
_modules: list[str] | None = None
# The entry points, those that were called, by name and value, and `sys.path` when they were found.
_GROUP = "bridge.adapters"
_found: list[EntryPoint] = []
_called: set[tuple[str, str]] = set()
_found_in: list[str] | None = None
# Packages whose classes no adapter is for.
_OWN = frozenset(
    {"builtins", "array", "bridge", "collections", "ctypes", "_ctypes", "mmap", "numpy", "torch"}
)


def register(
    name: str,
    *,
    types: Iterable[type | str] = (),
    importer: Callable[..., Any] | None = None,
    exporter: Callable[..., Any] | None = None,
    **more: Any,
) -> None:
    """Register a library under `name`; see bridge.register, and Adapter for `more`.

    Raises TypeError: an argument is not what it must be; nothing is registered then.
    """
    types = _checked(name, types, {"importer": importer, "exporter": exporter})
    _adapters[name] = Adapter(name, types, importer, exporter, **more)
    for changed in _on_change:
        changed()


def _checked(name: Any, types: Any, functions: dict[str, Any]) -> tuple[type | str, ...]:
    """Return `types` as a tuple. Raises TypeError: an argument of `register` is none."""
    if not isinstance(name, str) or not name:
        raise TypeError(f"The name of a library is a string, not {name!r}.")
    if isinstance(types, (str, type)) or not isinstance(types, Iterable):
        raise TypeError(f"types is a sequence of classes and dotted names, not {types!r}.")
    checked: tuple[type | str, ...] = tuple(types)
    for cls in checked:
        if not isinstance(cls, type) and not _is_dotted(cls):
            raise TypeError(
                f"{cls!r} is neither a class nor its dotted name, such as 'openvino.Tensor'."
            )
    for what, function in functions.items():
        if function is not None and not callable(function):
            raise TypeError(f"{what} is a function of one argument, not {function!r}.")
    return checked


def _is_dotted(name: Any) -> bool:
    if not isinstance(name, str):
        return False
    parts = name.removesuffix(".*").split(".")
    return (len(parts) > 1 or name.endswith(".*")) and all(part.isidentifier() for part in parts)


def on_change(function: Callable[[], object]) -> None:
    """Call `function` after each registration: what was found out about classes may be wrong."""
    _on_change.append(function)


def add_folder(package: str, path: Iterable[str], import_only: Container[str]) -> None:
    """Load modules of `package`, which is at `path`, when a library of their name is first met.

    `import_only`: the modules that register no exporter.
    """
    global _folder, _modules
    _folder, _modules = (package, path, import_only), None


def _names_of_modules() -> list[str]:
    global _modules
    if _modules is None:
        from pkgutil import iter_modules

        _modules = [module.name for module in iter_modules(_folder[1])]
    return _modules


def _load(name: str) -> Adapter | None:
    """Return what the module of the folder for the package of this name registered.

    None: the folder has no such module, or it registers other names.
    """
    if name not in _adapters and name in _names_of_modules():
        try:
            import_module(f"{_folder[0]}.{name}")
        except ImportError as error:
            raise missing_library(name, error) from error
    return _adapters.get(name)


def missing_library(name: str, error: ImportError) -> ImportError:
    """Return the error that a library cannot be imported, with what installs one that is absent."""
    reason = str(error).rstrip(".")
    # A package that is there and does not load is not mended by installing it.
    absent = isinstance(error, ModuleNotFoundError)
    install = f" Install it with: pip install {_PACKAGES.get(name, name)}" if absent else ""
    return ImportError(
        f"{name} is needed here and cannot be imported: {reason}.{install}", name=name
    )


def exporting_names() -> list[str]:
    """Return the names of libraries that can be exported to, registered or offered."""
    known = [name for name in _names_of_modules() if name not in _folder[2]]
    registered = [name for name, adapter in list(_adapters.items()) if adapter.exporter is not None]
    return list(dict.fromkeys([*known, *registered, *_offered_names()]))


def adapter_named(name: str) -> Adapter | None:
    """Return the adapter of the library; loads it. None: no such library is known.

    Raises ImportError: it cannot be loaded, as when the library is not installed.
    """
    adapter = _load(name)
    if adapter is None and _call_named(name):
        adapter = _adapters.get(name)
    return adapter


def adapter_of(cls: type, own: bool = False) -> Adapter | None:
    """Return the adapter that imports `cls` or, unless `own`, a class that it derives from.

    Loads the modules and calls the entry points of the packages that define these classes. No
    library is imported that is not loaded already.
    """
    for base in (cls,) if own else cls.__mro__[:-1]:
        package = str(base.__module__).partition(".")[0]
        if package in sys.modules and package not in _OWN:
            _load(package)
            _call_of_package(package)
        best = _best(base, "importer")
        if best is not None:
            return best
    return None


def _best(cls: type, role: str) -> Adapter | None:
    """Return the adapter with an ``importer`` or ``exporter`` that matches a class best.

    Of several that match alike, the one that was registered last.
    """
    best, best_match = None, 0
    for adapter in reversed(list(_adapters.values())):
        match = 0 if getattr(adapter, role) is None else adapter.match(cls)
        if match > best_match:
            best, best_match = adapter, match
    return best


def exporting_adapter(cls: type) -> Adapter | None:
    """Return the adapter of the library that `cls`, or a class it derives from, belongs to.

    None: there is none that the bridge converts to. No library is imported.
    """
    for base in cls.__mro__[:-1]:
        adapter_of(base, own=True)  # loads what its package has
        best = _best(base, "exporter")
        if best is not None:
            return best
    return None


def _is_named(cls: type, dotted: str) -> bool:
    """Return whether `dotted` is a name of `cls`: where it is defined, or where it is public."""
    return f"{cls.__module__}.{cls.__qualname__}" == dotted or _public(dotted) is cls


def _public(dotted: str) -> Any:
    """Return what a dotted name names; None if nothing that is loaded has it."""
    module_name, _, path = dotted.rpartition(".")
    names = [path]
    while module_name not in sys.modules:
        module_name, _, name = module_name.rpartition(".")
        if not module_name:
            return None
        names.insert(0, name)
    found: Any = sys.modules[module_name]
    for name in names:
        # (not getattr: it may import what a module loads at first use)
        found = getattr(found, "__dict__", {}).get(name)
    return found


# Entry points.


def _entry_points(rescan: bool = False) -> list[EntryPoint]:
    """Return the entry points; looks for them again if `sys.path` changed."""
    global _found, _found_in
    if rescan or _found_in != sys.path:
        from importlib.metadata import entry_points

        _found = list(entry_points(group=_GROUP))
        _found_in = list(sys.path)
    return _found


def _offered_names() -> list[str]:
    """Return the names of the entry points that may still register something."""
    return [
        found.name
        for found in _entry_points(rescan=True)
        if (found.name, found.value) not in _called
    ]


def _call_named(name: str) -> bool:
    """Call the entry points of this name that were not called yet; return whether there were any.

    Raises ImportError: one fails.
    """
    return _call([found for found in _entry_points(rescan=True) if found.name == name])


def _call_of_package(package: str) -> bool:
    """Call the entry points of a package that were not called yet, as `_call_named`."""
    return _call([found for found in _entry_points() if package in _packages(found)])


def _packages(found: EntryPoint) -> set[str]:
    """Return the packages whose classes an entry point may be for."""
    packages = {found.name.partition(".")[0], found.value.partition(":")[0].partition(".")[0]}
    distribution = found.dist
    if distribution is not None:
        packages.add(distribution.name.replace("-", "_"))
        packages.update((distribution.read_text("top_level.txt") or "").split())
        for path in distribution.files or ():
            packages.add(path.parts[0].removesuffix(".py"))
    return packages


def call_offers() -> tuple[bool, str]:
    """Call all entry points that were not called yet.

    Return whether one succeeded, and why others failed: they need not concern the object that is
    about to be refused.
    """
    called, failures = False, []
    for found in _entry_points(rescan=True):
        try:
            called = _call([found]) or called
        except ImportError as error:
            failures.append(str(error))
    return called, " ".join(failures)


def _call(entry_points: list[EntryPoint]) -> bool:
    called = False
    for found in entry_points:
        key = (found.name, found.value)
        if key in _called:
            continue
        _called.add(key)
        try:
            found.load()()
        except (Exception, SystemExit) as error:
            from bridge.exchange.refusal import reason_of

            _called.discard(key)
            raise ImportError(
                f"The entry point {found.name} = {found.value} of the group {_GROUP} fails: "
                f"{type(error).__name__}: {reason_of(error)}"
            ) from error
        called = True
    return called
