# SPDX-License-Identifier: Apache-2.0
"""``torch.load`` reads the bridge's tensors under its safe default, ``weights_only=True``."""

from __future__ import annotations

from bridge import pickling
from bridge.at.tensor import Tensor
from bridge.c10 import type_meta
from bridge.c10.array_ref import ArrayRef
from bridge.c10.device import DeviceType, as_device
from bridge.c10.options import TensorOptions
from bridge.caffe2.tensor.tensor import Tensor as Caffe2Tensor


def register() -> None:
    """Allow the functions and classes that pickles of tensors name.

    They make tensors of the bytes that the file has, and nothing else: no code of the file runs.
    Subclasses and registered element classes are for their own modules to allow.
    """
    import torch

    torch.serialization.add_safe_globals(
        [
            Tensor,
            Caffe2Tensor,
            *pickling.REBUILDERS,
            *type_meta.REBUILDERS,
            # classes that checkpoints have beside tensors
            as_device,
            DeviceType,
            ArrayRef,
            TensorOptions,
        ]
    )
