# SPDX-License-Identifier: Apache-2.0
"""The known libraries: how each makes, imports and shows a tensor, as lines of a program."""

from __future__ import annotations

import importlib.util
from importlib import metadata

# A library's module, and its lines: imports first, then the result of each part.
_NUMPY = "import numpy as np"
LIBRARIES: dict[str, tuple[str, str, str | None, str | None, str | None]] = {
    # name: (module, imports, make(array), from_dlpack(x, **kwargs), to_numpy(tensor))
    "bridge": (
        "bridge",
        "import bridge",
        "bridge.from_dlpack(array)",
        "bridge.from_dlpack(x, **kwargs)",
        "bridge.to_numpy(tensor)",
    ),
    "caffe2": (
        "bridge",
        "import bridge",
        "bridge.convert(array, 'caffe2')",
        "bridge.convert(x, 'caffe2', **kwargs)",
        "bridge.to_numpy(tensor)",
    ),
    "numpy": ("numpy", _NUMPY, "array", "np.from_dlpack(x, **kwargs)", "tensor"),
    "torch": (
        "torch",
        "import torch",
        "torch.from_numpy(array)",
        "torch.from_dlpack(x, **kwargs)",
        "tensor.numpy()",
    ),
    "jax": (
        "jax",
        "import jax\nimport numpy as np",
        "jax.numpy.asarray(array)",
        "jax.dlpack.from_dlpack(x, **kwargs)",
        "np.asarray(tensor)",
    ),
    "tensorflow": (
        "tensorflow",
        "import tensorflow as tf",
        "tf.constant(array)",
        "tf.experimental.dlpack.from_dlpack(x.__dlpack__(**kwargs))",
        "tensor.numpy()",
    ),
    "paddle": (
        "paddle",
        "import paddle",
        "paddle.to_tensor(array)",
        "paddle.from_dlpack(x, **kwargs)",
        "tensor.numpy()",
    ),
    "tvm_ffi": (
        "tvm_ffi",
        "import numpy as np\nimport tvm_ffi",
        "tvm_ffi.from_dlpack(array)",
        "tvm_ffi.from_dlpack(x, **kwargs)",
        "np.from_dlpack(tensor)",
    ),
    "cupy": (
        "cupy",
        "import cupy",
        "cupy.asarray(array)",
        "cupy.from_dlpack(x, **kwargs)",
        "tensor.get()",
    ),
    "mlx": (
        "mlx",
        "import mlx.core\nimport numpy as np",
        "mlx.core.array(array)",
        "mlx.core.from_dlpack(x, **kwargs)",
        "np.array(tensor, copy=False)",
    ),
    "warp": (
        "warp",
        "import warp",
        "warp.from_numpy(array)",
        "(warp.init(), warp.from_dlpack(x, **kwargs))[1]",
        "tensor.numpy()",
    ),
    "pyarrow": (
        "pyarrow",
        "import pyarrow",
        "pyarrow.array(array)",
        None,
        "tensor.to_numpy()",
    ),
    "onnxruntime": (
        "onnxruntime",
        "import onnxruntime",
        "onnxruntime.OrtValue.ortvalue_from_numpy(array)",
        "onnxruntime.OrtValue.from_dlpack(x, **kwargs)",
        "tensor.numpy()",
    ),
    "awkward": (
        "awkward",
        "import awkward",
        None,
        "awkward.from_dlpack(x, **kwargs)",
        "awkward.to_numpy(tensor)",
    ),
    "mindspore": (
        "mindspore",
        "import mindspore",
        "mindspore.Tensor.from_numpy(array)",
        "mindspore.from_dlpack(x, **kwargs)",
        "tensor.asnumpy()",
    ),
    "array_api_strict": (
        "array_api_strict",
        "import array_api_strict\nimport numpy as np",
        "array_api_strict.asarray(array)",
        "array_api_strict.from_dlpack(x, **kwargs)",
        "np.from_dlpack(tensor)",
    ),
}
_SIGNATURES = ("make(array)", "from_dlpack(x, **kwargs)", "to_numpy(tensor)")


def module_of(name: str) -> str:
    """Return the name of a library's module. Raises ValueError: the library is unknown."""
    if name not in LIBRARIES:
        raise ValueError(f"no library has the name {name!r}; known are {', '.join(LIBRARIES)}")
    return LIBRARIES[name][0]


def installed(name: str) -> bool:
    """Return whether a library is there to be imported, without importing it.

    Raises ValueError: the library is unknown.
    """
    try:
        spec = importlib.util.find_spec(module_of(name))
    except ImportError:
        return True  # it is there, and broken
    return spec is not None and (spec.loader is not None or name == "mlx")


def setup_of(name: str) -> str:
    """Return the lines of a program that define the library's parts."""
    _, imports, *parts = LIBRARIES[name]
    lines = [imports]
    for signature, value in zip(_SIGNATURES, parts, strict=True):
        if value is not None:
            lines.append(f"def {signature}:\n    return {value}")
    return "\n".join(lines) + "\n"


def version_of(name: str) -> str | None:
    """Return the version of an installed library by its metadata."""
    module = module_of(name)
    for distribution in metadata.packages_distributions().get(module, ()):
        return metadata.version(distribution)
    return None
