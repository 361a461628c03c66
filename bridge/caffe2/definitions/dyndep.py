# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.dyndep``: libraries of operators in C++, which cannot be loaded."""

from __future__ import annotations

import os

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet

__all__ = ["GetImportedOpsLibraries", "InitOpsLibrary"]


def InitOpsLibrary(name: Any, trigger_lazy: bool = True) -> None:
    """Ignore a name that is not a file, or names Detectron's operators; refuse other files.

    Scripts name libraries by their path in Caffe2's sources, which is not a file on other machines;
    Caffe2 ignores such names too. The operators of Detectron's library are among the operators of
    the bridge. trigger_lazy has no effect.

    Raises EnforceNotMet: `name` is another file. Operators in C++ are compiled for Caffe2's own
    memory layout; write them as subclasses of ``caffe2.Operator``, or call the library through
    torch.
    Follows InitOpsLibrary, caffe2/python/dyndep.py, PyTorch 1.8.1.

    >>> from bridge.caffe2 import dyndep
    >>> dyndep.InitOpsLibrary("@/caffe2/caffe2/fb/operators:some_ops")
    Ignoring @/caffe2/caffe2/fb/operators:some_ops: it is not a file.
    """
    if not isinstance(name, (str, os.PathLike)) or not os.path.exists(name):
        print(f"Ignoring {name}: it is not a file.")
        return
    if os.path.basename(name).startswith("libcaffe2_detectron_ops"):
        print(f"Not loading {name}: its operators are there already.")
        return
    raise EnforceNotMet(
        f"{str(name)!r} is a library of operators in C++, compiled for Caffe2. Write its operators "
        "as subclasses of caffe2.Operator.",
        "dyndep.InitOpsLibrary",
    )


def GetImportedOpsLibraries() -> set[str]:
    """Return the names of the loaded libraries: an empty set."""
    return set()
