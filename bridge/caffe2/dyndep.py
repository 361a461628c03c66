# SPDX-License-Identifier: Apache-2.0
"""The name of ``caffe2.python.dyndep``: libraries of operators in C++, which cannot be loaded."""

from __future__ import annotations

import os

from bridge.c10.errors import EnforceNotMet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["GetImportedOpsLibraries", "InitOpsLibrary"]


def InitOpsLibrary(name: Any, trigger_lazy: bool = True) -> None:
    """Say that there is no file `name`, and do nothing, or refuse it.

    Scripts name libraries by their place in Caffe2's sources, which are no files where it is
    installed; the real one passes over them, too.

    Raises EnforceNotMet: it is a file; operators in C++ are made for Caffe2's own memory layout.
    Write them as subclasses of ``caffe2.Operator``, or call the library through torch. Follows
    InitOpsLibrary, caffe2/python/dyndep.py, PyTorch 1.8.1.
    """
    if not isinstance(name, (str, os.PathLike)) or not os.path.exists(name):
        print(f"Ignoring {name}: it is no file.")
        return
    raise EnforceNotMet(
        f"{str(name)!r} is a library of operators in C++ for the real Caffe2. Write its operators "
        "as subclasses of caffe2.Operator.",
        "dyndep.InitOpsLibrary",
    )


def GetImportedOpsLibraries() -> set[str]:
    """Return the libraries that were loaded: none."""
    return set()
