# SPDX-License-Identifier: Apache-2.0
"""install: make ``from caffe2.python import core`` import the bridge's module.

Two importers read the table below. One, which `install` puts at the front of ``sys.meta_path``,
finds the modules of Caffe2; each is the bridge's module itself: ``caffe2.python.core is
bridge.caffe2.core``; but for the workspace, whose FetchBlob scripts know otherwise. Other modules
are loaded from an old PyTorch, if `install` is given one.

The other is always there, and last. It finds by Caffe2's own name, ``bridge.caffe2.model_helper``,
a module in its package, `bridge.caffe2.modeling.model_helper`. A file per name
would only import a module that stands elsewhere; type checkers, which run no importers, know these
names from the imports in `bridge.caffe2`.
"""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike
    from types import ModuleType

    from bridge.caffe2.legacy.source import Source

__all__ = ["install"]

# The modules of a package of Caffe2 that are in a folder of this one; ``a=b``: the bridge's is `b`.
_PLACES = {
    ("caffe2.proto", "proto"): "caffe2_pb2 hsm_pb2 metanet_pb2 predictor_consts_pb2",
    ("caffe2.python", ""): (
        "_import_c_extension=c_extension brew build cnn control core device_checker "
        "experiment_util functional gradient_checker hsm_util muji net_builder net_drawer "
        "net_printer normalizer optimizer parallel_workers schema task timeout_guard "
        "transformations tt_core utils visualize workspace=script_workspace"
    ),
    ("caffe2.python", "core"): "control_ops_util",
    ("caffe2.python", "definitions"): "dyndep lazy=operator_types lazy_dyndep scope",
    ("caffe2.python", "modeling"): (
        "context model_helper modifier_context normalizer_context=modifier_context "
        "optimizer_context=modifier_context regularizer_context=modifier_context"
    ),
    ("caffe2.python", "predictor"): "predictor_constants=predictor_py_utils",
    ("caffe2.python", "task"): "session",
    ("caffe2.python.modeling", "modeling"): (
        "compute_histogram_for_blobs=watched_blobs compute_norm_for_blobs=watched_blobs "
        "compute_statistics_for_blobs=watched_blobs get_entry_from_blobs=watched_blobs "
        "initializers net_modifier parameter_info parameter_sharing"
    ),
    ("caffe2.python.modeling", "optimizer"): "gradient_clipping",
    ("caffe2.python.predictor", "predictor"): (
        "mobile_exporter predictor_exporter predictor_py_utils serde=predictor_py_utils"
    ),
}

# The modules of Caffe2 and the bridge's modules in their place; None: a package without names.
_MODULES: dict[str, str | None] = {"caffe2": None, **dict.fromkeys(one for one, _ in _PLACES)}
for (_package, _folder), _names in _PLACES.items():
    for _name, _, _own in (one.partition("=") for one in _names.split()):
        _place = f"{_folder}.{_own or _name}".lstrip(".")
        _MODULES[f"{_package}.{_name}"] = f"bridge.caffe2.{_place}"

# The names of modules in `bridge.caffe2`; Python finds those that are files without this.
_ELSEWHERE: dict[str, str | None] = {
    f"bridge.caffe2.{name.rpartition('.')[2]}": place
    for name, place in _MODULES.items()
    if place is not None and name.startswith("caffe2.python.")
}


class _Places:
    """A finder and loader of modules by names of a table.

    Its base classes would be classes of importlib.abc, which take longer to import than the rest of
    this package.
    """

    def __init__(self, places: dict[str, str | None]) -> None:
        self.places = places

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a module of the table; None for all others."""
        if fullname not in self.places:
            return None
        package = any(name.startswith(f"{fullname}.") for name in self.places)
        loader: Any = self  # by its methods, not by its base class
        return ModuleSpec(fullname, loader, is_package=package)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Return None: Python creates a module, which `exec_module` replaces."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new module by the bridge's."""
        ours = self.places[module.__name__]
        if ours is not None:
            sys.modules[module.__name__] = importlib.import_module(ours)
        else:
            vars(module)["__getattr__"] = lambda name: _missing(module.__name__, name)


class _Caffe2(_Places):
    """A finder and loader of the modules of Caffe2."""

    def __init__(self) -> None:
        super().__init__(_MODULES)
        self.legacy: Source | None = None

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Return the spec of a module of Caffe2: the bridge's, else the old PyTorch's.

        None for modules of other packages. Raises ModuleNotFoundError, which says how to get it:
        neither has this one.
        """
        if fullname in self.places:
            return super().find_spec(fullname, path, target)
        if not fullname.startswith("caffe2."):
            return None
        found = self.legacy and self.legacy.find_spec(fullname)
        if found:
            return found
        raise ModuleNotFoundError(self._not_found(fullname), name=fullname)

    def _not_found(self, fullname: str) -> str:
        """Return the message about a module that is nowhere."""
        message = f"The bridge, installed in place of Caffe2, has no module {fullname!r}"
        if self.legacy is not None:
            return f"{message}, and neither has the old PyTorch at {self.legacy.path!r}."
        return (
            f"{message}. Modules in pure Python are loaded from an old PyTorch, 1.0 to 2.3, by "
            "caffe2.install(legacy=PATH) or `python -m bridge.caffe2 --legacy PATH script.py`; "
            "PATH is its wheel (`pip download --no-deps --only-binary :all: --python-version 3.8 "
            f"torch==1.8.1`), its folder or its site-packages. The bridge has "
            f"{', '.join(sorted(_MODULES))}."
        )


def _missing(package: str, name: str) -> Any:
    """Raise the error for a name that a package lacks.

    For ``from caffe2.python import name`` it is the module's, which Python has dropped by
    then: it asks the package once more.
    """
    from opcode import opname

    asking = sys._getframe(2)
    if opname[asking.f_code.co_code[asking.f_lasti]] == "IMPORT_FROM":
        _finder.find_spec(f"{package}.{name}", None)
    raise AttributeError(f"module {package!r} has no attribute {name!r}")


_finder = _Caffe2()
sys.meta_path.append(_Places(_ELSEWHERE))


def install(force: bool = False, legacy: str | PathLike[str] | None = None) -> None:
    """Make the modules of ``caffe2.python`` and ``caffe2.proto`` import from the bridge.

    legacy: the path of an old PyTorch (1.0 to 2.3): its wheel, its folder or its site-packages. The
    modules of Caffe2 that the bridge lacks are loaded from there, if they are pure Python; nothing
    is copied, and wheels are read where they are. Without it, importing such a module raises
    ModuleNotFoundError.

    It holds until the process ends; a second call does nothing, except that its `legacy` replaces
    the first for modules that are not loaded yet.

    Raises EnforceNotMet: Caffe2 itself has been imported or can be. With `force` the bridge takes
    its place; objects imported from it before stay as they are. Or `legacy` has no Caffe2.

    >>> from bridge import caffe2
    >>> caffe2.install(force=True)
    >>> from caffe2.python import workspace
    >>> workspace.FeedBlob is caffe2.workspace.FeedBlob
    True
    """
    source = None
    if legacy is not None:
        from bridge.caffe2.legacy.source import Source

        source = Source(legacy, "install")
    if _finder in sys.meta_path:
        _finder.legacy = source or _finder.legacy
        return
    place = _place_of_caffe2()
    if place is not None and not force:
        raise EnforceNotMet(
            f"There is a real Caffe2, at {place}. Use that, or take its place in this process by "
            "install(force=True).",
            "install",
        )
    for name in [one for one in sys.modules if one.partition(".")[0] == "caffe2"]:
        del sys.modules[name]
    _finder.legacy = source
    sys.meta_path.insert(0, _finder)


def _place_of_caffe2() -> str | None:
    """Return where Caffe2 itself is, if it has been imported or can be."""
    from importlib.util import find_spec

    loaded = sys.modules.get("caffe2")
    if loaded is not None:
        return getattr(loaded, "__file__", None) or "sys.modules"
    spec = find_spec("caffe2")
    if spec is None:
        return None
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    return next((place for place in places if place), "an importer of its own")
