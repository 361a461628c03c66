# SPDX-License-Identifier: Apache-2.0
"""Which libraries read ``x.dtype`` as their own kind of type.

torch's parser takes no foreign type, and code for NumPy looks types up in tables of NumPy's. So a
library's own code that reads ``x.dtype`` gets a ``torch.dtype`` or a ``numpy.dtype``, and all other
code a `TypeMeta`, which is equal to both. ``x.dtype()`` is a TypeMeta everywhere.
"""

from __future__ import annotations

# Written for torch's tensors.
_TORCH = """
accelerate botorch captum diffusers functorch gpytorch ignite kornia lightning lightning_fabric
monai open_clip peft pyro pytorch_lightning safetensors.torch sentence_transformers tensordict timm
torch torch_geometric torchao torchaudio torchmetrics torchrl torchvision transformers
"""
# Written for NumPy's arrays.
_NUMPY = """
PIL astropy imageio numcodecs numpy onnx pandas safetensors.numpy skimage tifffile xarray zarr
"""
_KINDS = {**dict.fromkeys(_TORCH.split(), "torch"), **dict.fromkeys(_NUMPY.split(), "numpy")}
# They read it to compare it with what a program reads.
_KINDS |= {"torch._dynamo": "", "torch._guards": ""}


def reader_kind(module: str) -> str:
    """Return "torch" or "numpy" for a module of such a library, by its full name; else ""."""
    parts = module.split(".", 2)
    return _KINDS.get(".".join(parts[:2]), _KINDS.get(parts[0], ""))
