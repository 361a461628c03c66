# SPDX-License-Identifier: Apache-2.0
"""Operators on maps from integers to integers."""

from __future__ import annotations

import torch

from bridge.caffe2.base.data_types import type_of_argument
from bridge.caffe2.blobs.objects import Map
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import INTS, require
from bridge.caffe2.operators.base.torch_operator import TorchOperator


@register_operator("CreateMap", inputs="0", outputs="1")
class CreateMap(TorchOperator):
    """Create an empty map from `key_dtype` to `value_dtype`, int32 (default) or int64."""

    def RunOnDevice(self) -> None:
        types = [
            type_of_argument(self.GetSingleArgument(name, 2), name)
            for name in ("key_dtype", "value_dtype")
        ]
        require(all(one in INTS for one in types), "Keys and values must be int32 or int64.")
        self.OutputBlob(0).Reset(Map(*types))


@register_operator("KeyValueToMap", inputs="2", outputs="1")
class KeyValueToMap(TorchOperator):
    """Create a map from the keys in input 0 to the values in input 1.

    Of equal keys the first one counts.
    """

    def RunOnDevice(self) -> None:
        keys, values = self.integers(0), self.integers(1)
        require(len(keys) == len(values), f"There are {len(keys)} keys, but {len(values)} values.")
        made = Map(self.Input(0).dtype(), self.Input(1).dtype())
        for key, value in zip(keys, values, strict=True):
            made.items.setdefault(key, value)
        self.OutputBlob(0).Reset(made)


@register_operator("MapToKeyValue", inputs="1", outputs="2")
class MapToKeyValue(TorchOperator):
    """The keys of a map and their values, in order of insertion."""

    def RunOnDevice(self) -> None:
        given = self.Input(0, Map)
        self.put(0, torch.tensor(list(given.items), dtype=given.keys.torch))
        self.put(1, torch.tensor(list(given.items.values()), dtype=given.values.torch))
