# SPDX-License-Identifier: Apache-2.0
"""The binary interface of DLPack, and the owners of imported tensors."""

from bridge.dlpack.capsule import ManagedTensor

__all__ = ["ManagedTensor"]
