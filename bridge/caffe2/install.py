# SPDX-License-Identifier: Apache-2.0
"""install: have ``from caffe2.python import workspace`` give the bridge's modules.

Modules are found by an importer at the front of ``sys.meta_path``, which knows the names below and
gives each the bridge's module itself: ``caffe2.python.workspace is bridge.caffe2.workspace``.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

from bridge.c10.errors import EnforceNotMet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import ModuleType

__all__ = ["install"]

# Modules of Caffe2 and what gives them here; None is a package of nothing but modules.
_MODULES: dict[str, str | None] = {
    "caffe2": None,
    "caffe2.proto": "bridge.caffe2.proto",
    "caffe2.proto.caffe2_pb2": "bridge.caffe2.proto.caffe2_pb2",
    "caffe2.python": None,
    "caffe2.python._import_c_extension": "bridge.caffe2.c_extension",
    "caffe2.python.brew": "bridge.caffe2.brew",
    "caffe2.python.core": "bridge.caffe2.core",
    "caffe2.python.dyndep": "bridge.caffe2.dyndep",
    "caffe2.python.model_helper": "bridge.caffe2.model_helper",
    "caffe2.python.modeling": None,
    "caffe2.python.modeling.initializers": "bridge.caffe2.initializers",
    "caffe2.python.modeling.parameter_info": "bridge.caffe2.parameter_info",
    "caffe2.python.optimizer": "bridge.caffe2.optimizer",
    "caffe2.python.predictor": None,
    "caffe2.python.predictor.mobile_exporter": "bridge.caffe2.mobile_exporter",
    "caffe2.python.scope": "bridge.caffe2.scope",
    "caffe2.python.utils": "bridge.caffe2.utils",
    "caffe2.python.workspace": "bridge.caffe2.workspace",
}


class _Caffe2(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds and loads the modules of Caffe2's names."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Return the spec of a module that is here; say which there are where it is not."""
        if fullname in _MODULES:
            package = any(name.startswith(f"{fullname}.") for name in _MODULES)
            return importlib.machinery.ModuleSpec(fullname, self, is_package=package)
        if fullname.startswith("caffe2."):
            raise ModuleNotFoundError(
                f"The bridge, which stands in for Caffe2 here, has no module {fullname!r}; it has "
                f"{', '.join(sorted(_MODULES))}.",
                name=fullname,
            )
        return None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        """Make nothing: Python makes the module, whose place `exec_module` gives away."""
        return None

    def exec_module(self, module: ModuleType) -> None:
        """Put the bridge's module in the place of the new one."""
        ours = _MODULES[module.__name__]
        if ours is not None:
            sys.modules[module.__name__] = importlib.import_module(ours)


_finder = _Caffe2()


def install(force: bool = False) -> None:
    """Have the modules of ``caffe2.python`` and ``caffe2.proto`` import from the bridge.

    For this process, until it ends; again is nothing. Other modules of Caffe2 than those that are
    here raise ModuleNotFoundError, which says which there are.

    Raises EnforceNotMet: a real Caffe2 could be imported, or was. With `force` the bridge takes its
    place nevertheless; what was imported from it before stays what it is.

    >>> from bridge import caffe2
    >>> caffe2.install(force=True)
    >>> from caffe2.python import workspace
    >>> workspace is caffe2.workspace
    True
    """
    if _finder in sys.meta_path:
        return
    real = _real_caffe2()
    if real is not None and not force:
        raise EnforceNotMet(
            f"There is a real Caffe2, at {real}. Use that, or take its place in this process by "
            "install(force=True).",
            "install",
        )
    for name in [one for one in sys.modules if one.partition(".")[0] == "caffe2"]:
        del sys.modules[name]
    sys.meta_path.insert(0, _finder)


def _real_caffe2() -> str | None:
    """Return the place of a Caffe2 that Python would import, or has."""
    loaded = sys.modules.get("caffe2")
    if loaded is not None:
        return getattr(loaded, "__file__", None) or "sys.modules"
    spec = importlib.util.find_spec("caffe2")
    if spec is None:
        return None
    places = [spec.origin, *(spec.submodule_search_locations or ())]
    return next((place for place in places if place), "an importer of its own")
