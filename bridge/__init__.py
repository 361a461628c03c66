# SPDX-License-Identifier: Apache-2.0
"""One tensor for all frameworks: at.Tensor and caffe2.Tensor around one TensorImpl,
zero-copy to and from torch, NumPy and everything else that speaks DLPack.

``import bridge`` imports no framework; each is loaded when its first tensor is seen. The parts of
the package are loaded when they are first used.

The package is built in layers. A module imports from its own layer and from the layers below,
never from those above; ``tests/test_architecture.py`` checks it. The layers, lowest first::

    _version annotation lazy typing svg dlpack c10 wire exchange libraries pickling wrapper
    exchange_table at python_values readonly_torch
    caffe2.proto caffe2.base caffe2.tensor caffe2.blobs caffe2.files caffe2.definitions
    caffe2.schema caffe2.gradients caffe2.core caffe2.execution caffe2.operators
    caffe2.workspaces caffe2.modules caffe2.conversion caffe2.modeling caffe2.brew
    caffe2.optimizer caffe2.task caffe2.predictor caffe2.legacy caffe2.* caffe2
    see single trees front c_api conform functions tf integrations shared include bridge shell
    __main__

In `bridge/caffe2` a file, and a package such as ``core``, is a module of ``caffe2.python``: the
layer ``caffe2.*``. All else is the engine, the modules in such a package too; it imports none of
them.
"""

from __future__ import annotations

from bridge import integrations as _integrations
from bridge.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge import at, c10, caffe2, conform, tf
    from bridge import typing as typing
    from bridge._version import __version__
    from bridge.front import (
        asarray,
        audit,
        convert,
        explain,
        from_dlpack,
        no_copy,
        register,
        shares_memory,
        to_cupy,
        to_jax,
        to_numpy,
        to_tensorflow,
        to_torch,
    )
    from bridge.functions import wrap
    from bridge.include import get_include
    from bridge.shared import Shared, attach, share

__all__ = [
    "Shared", "__version__", "asarray", "at", "attach", "audit", "c10", "caffe2", "conform",
    "convert", "explain", "from_dlpack", "get_include", "no_copy", "register", "share",
    "shares_memory", "tf", "to_cupy", "to_jax", "to_numpy", "to_tensorflow", "to_torch", "wrap",
]  # fmt: skip

_integrations.prepare()

# Loaded at first use, so that a library that only may meet a tensor pays nothing for the import.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge._version": "__version__",
        "bridge.at": "at",
        "bridge.c10": "c10",
        "bridge.caffe2": "caffe2",
        "bridge.conform": "conform",
        "bridge.front": (
            "asarray audit convert explain from_dlpack no_copy register shares_memory to_cupy "
            "to_jax to_numpy to_tensorflow to_torch"
        ),
        "bridge.functions": "wrap",
        "bridge.include": "get_include",
        "bridge.shared": "Shared attach share",
        "bridge.tf": "tf",
        "bridge.typing": "typing",
    },
)

if not TYPE_CHECKING:  # type checkers would take any name for one of these
    __getattr__ = _get
