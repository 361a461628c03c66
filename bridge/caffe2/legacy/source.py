# SPDX-License-Identifier: Apache-2.0
"""Source: the ``caffe2`` package of an old PyTorch, in a folder or in its wheel."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.machinery import ExtensionFileLoader, ModuleSpec, PathFinder

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.legacy.loader import Loader


class Source:
    """Where an old PyTorch's modules of Caffe2 lie: ``folder/caffe2``, or the same in a wheel.

    path: the wheel; a ``site-packages`` folder or another that has a ``caffe2`` folder; that folder
    itself; or the ``torch`` folder beside it. Wheels are read where they are, by zipimport.

    Raises EnforceNotMet: there is no Caffe2.
    """

    def __init__(self, path: str | os.PathLike[str], caller: str) -> None:
        self.path = os.path.abspath(os.path.expanduser(os.fspath(path)))
        self.folder = self._folder(caller)

    def _folder(self, caller: str) -> str:
        """Return the folder or wheel that has the package ``caffe2``."""
        if not os.path.exists(self.path):
            raise EnforceNotMet(f"There is no file or folder {self.path!r}.", caller)
        parent, name = os.path.split(self.path)
        folders = [self.path]
        if name == "caffe2":
            folders = [parent]
        elif name == "torch":
            folders.append(parent)
        for folder in folders:
            if PathFinder.find_spec("caffe2", [folder]) is not None:
                return folder
        raise EnforceNotMet(
            f"{self.path!r} has no package caffe2: give an old PyTorch's wheel, its folder or its "
            "site-packages; versions 1.0 to 2.3 have Caffe2.",
            caller,
        )

    def find_spec(self, fullname: str) -> ModuleSpec | None:
        """Return the spec of a module in pure Python, None if there is none.

        Raises ModuleNotFoundError: there is a compiled one, which belongs to the old PyTorch.
        """
        package = fullname.rpartition(".")[0]
        folder = os.path.join(self.folder, *package.split("."))
        found = PathFinder.find_spec(fullname, [folder])
        if found is None or found.loader is None or found.origin is None:
            return self._folder_spec(fullname, os.path.join(folder, fullname[len(package) + 1 :]))
        if isinstance(found.loader, ExtensionFileLoader):
            raise ModuleNotFoundError(
                f"{fullname} is compiled in {self.path}, for the old PyTorch; nothing compiled is "
                "loaded from there.",
                name=fullname,
            )
        inner: Any = found.loader
        if inner.get_source(fullname) is None:
            return None
        found.loader = Loader(inner)
        found.cached = None
        return found

    def _folder_spec(self, fullname: str, folder: str) -> ModuleSpec | None:
        """Return the spec of a folder without ``__init__.py``, None if there is none."""
        if not os.path.isdir(folder) and fullname.replace(".", "/") not in self._folders_of_wheel:
            return None
        spec = ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [folder]
        return spec

    @cached_property
    def _folders_of_wheel(self) -> set[str]:
        """The folders of Caffe2 in the wheel, which need not have entries of their own."""
        if not os.path.isfile(self.folder):
            return set()
        from zipfile import ZipFile

        with ZipFile(self.folder) as wheel:
            names = [name for name in wheel.namelist() if name.startswith("caffe2/")]
        return {name[:i] for name in names for i in range(len(name)) if name[i] == "/"}
