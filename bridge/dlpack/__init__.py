# SPDX-License-Identifier: Apache-2.0
"""The binary interface of DLPack, and the owners of what comes in through it."""

from bridge.dlpack.capsule import ManagedTensor

__all__ = ["ManagedTensor"]
