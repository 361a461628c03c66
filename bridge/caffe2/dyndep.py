# SPDX-License-Identifier: Apache-2.0
"""The name of ``caffe2.python.dyndep``: libraries of operators in C++, which cannot be loaded."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet

__all__ = ["GetImportedOpsLibraries", "InitOpsLibrary", "RegisterOpsLibrary"]


def InitOpsLibrary(name: str, trigger_lazy: bool = True) -> None:
    """Raise EnforceNotMet: operators in C++ are made for Caffe2's own memory layout.

    Write the operator as a subclass of ``caffe2.Operator``, or call the library through torch.
    """
    raise EnforceNotMet(
        f"{name!r} is a library of operators in C++ for the real Caffe2. Write its operators as "
        "subclasses of caffe2.Operator.",
        "",
        "dyndep.InitOpsLibrary",
    )


RegisterOpsLibrary = InitOpsLibrary


def GetImportedOpsLibraries() -> list[str]:
    """List the libraries that were loaded: none."""
    return []
