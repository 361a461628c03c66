# SPDX-License-Identifier: Apache-2.0
"""Operators on mutexes and atomic bools."""

from __future__ import annotations

import torch

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.blobs.objects import AtomicBool, Mutex
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import BOOL, INT32, INT64, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("CreateAtomicBool", inputs="0", outputs="1", gradient="undefined")
@register_operator("CreateMutex", inputs="0", outputs="1", gradient="undefined")
class Create(TorchOperator):
    """Create a mutex, or an atomic bool, False."""

    def RunOnDevice(self) -> None:
        self.OutputBlob(0).Reset(
            Mutex() if self._definition.type == "CreateMutex" else AtomicBool()
        )


@register_operator("AtomicFetchAdd", inputs="3", outputs="2", inplace="1>0", gradient="undefined")
@register_operator("AtomicFetchAdd64", inputs="3", outputs="2", inplace="1>0")
class AtomicFetchAdd(TorchOperator):
    """Add input 2 to input 1, in place, under the mutex in input 0; output 1: the former value.

    The numbers are int32, or int64 for AtomicFetchAdd64.
    """

    def RunOnDevice(self) -> None:
        types = INT64 if self._definition.type.endswith("64") else INT32
        with self.Input(0, Mutex).lock:
            x, added = self.x(1, types), self.x(2, types)
            require(x.numel() > 0 and added.numel() > 0, "Inputs 1 and 2 must not be empty.")
            before = int(x.reshape(-1)[0])
            total = torch.tensor(before, dtype=x.dtype) + added.reshape(-1)[0]
            self.put_value(1, before, types[0])
            self.put_value(0, int(total), types[0])


@register_operator("ConditionalSetAtomicBool", inputs="2", outputs="0", gradient="undefined")
class ConditionalSetAtomicBool(TorchOperator):
    """Set the atomic bool in input 0 to True if input 1 is True."""

    def RunOnDevice(self) -> None:
        held, given = self.Input(0, AtomicBool), self.x(1, BOOL)
        if given.numel() != 1:
            raise EnforceNotMet(f"Input 1 must be one bool, not {given.numel()}.")
        held.value = held.value or bool(given)


@register_operator("CheckAtomicBool", inputs="1", outputs="1", gradient="undefined")
class CheckAtomicBool(TorchOperator):
    """The value of the atomic bool in input 0."""

    def RunOnDevice(self) -> None:
        value = self.Input(0, AtomicBool).value
        self.Output(0, [1], c10.bool).mutable_data()[:] = value
