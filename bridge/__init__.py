# SPDX-License-Identifier: Apache-2.0
"""One tensor for all frameworks: at.Tensor and caffe2.Tensor around one TensorImpl,
zero-copy to and from torch, NumPy and everything else that speaks DLPack.

``import bridge`` imports no framework; each is loaded when its first tensor is seen.

The package is built in layers. A module imports from its own layer and from the layers below,
never from those above; ``tests/test_architecture.py`` checks it. The layers, lowest first::

    _version typing svg dlpack c10 wire exchange libraries pickling wrapper exchange_table at
    python_values library_export
    caffe2.proto caffe2.base caffe2.tensor caffe2.blobs caffe2.files caffe2.definitions
    caffe2.gradients caffe2.nets caffe2.execution caffe2.operators caffe2.workspaces
    caffe2.modules caffe2.conversion caffe2.models caffe2.tasks caffe2.legacy caffe2.* caffe2
    see front tf integrations bridge shell __main__
"""

from __future__ import annotations

from bridge import at, c10, caffe2
from bridge import integrations as _integrations
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

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge import tf

__all__ = [
    "__version__",
    "asarray",
    "at",
    "audit",
    "c10",
    "caffe2",
    "convert",
    "explain",
    "from_dlpack",
    "no_copy",
    "register",
    "shares_memory",
    "tf",
    "to_cupy",
    "to_jax",
    "to_numpy",
    "to_tensorflow",
    "to_torch",
]


_integrations.prepare()


def __getattr__(name: str) -> Any:
    # Loaded at first use: it needs NumPy, which `import bridge` does without.
    if name == "tf":
        from importlib import import_module

        return import_module("bridge.tf")
    raise AttributeError(f"module 'bridge' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
