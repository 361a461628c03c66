# SPDX-License-Identifier: Apache-2.0
"""Operators on stores, the keys and values that all processes see.

Follows caffe2/distributed/store_ops.cc, PyTorch 1.8.1. Other than there, a store of files counts.
"""

from __future__ import annotations

from bridge import c10
from bridge.caffe2.blobs.serialize import deserialize, serialize
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.checks import require
from bridge.caffe2.operators.base.torch_operator import TorchOperator
from bridge.caffe2.operators.distributed.redis_store import redis_store
from bridge.caffe2.operators.distributed.store_handlers import StoreHandler, file_store, timeout_of


@register_operator("FileStoreHandlerCreate", ("cpu", "cuda"), inputs="0", outputs="1")
class FileStoreHandlerCreate(TorchOperator):
    """Create a store in the folder `path`, which all processes see.

    `prefix` (""): stores of different prefixes have different keys. A folder that an earlier run
    has used still has its keys; give each run its own.
    """

    _has_effects = True

    def RunOnDevice(self) -> None:
        path = self.GetSingleArgument("path", "")
        require(bool(path), "The argument path is missing, a folder that all processes see.")
        self.OutputBlob(0).Reset(file_store(path, self.GetSingleArgument("prefix", "")))


@register_operator("RedisStoreHandlerCreate", inputs="0", outputs="1")
class RedisStoreHandlerCreate(TorchOperator):
    """Create a store on the Redis server at `host`, `port`, whose keys begin with `prefix` ("")."""

    _has_effects = True

    def RunOnDevice(self) -> None:
        host, port = self.GetSingleArgument("host", ""), self.GetSingleArgument("port", 0)
        require(bool(host), "The argument host is missing, the name of the Redis server.")
        require(port > 0, "The argument port is missing, that of the Redis server.")
        self.OutputBlob(0).Reset(redis_store(host, port, self.GetSingleArgument("prefix", "")))


class _OfStore(TorchOperator):
    """An operator on the store in input 0."""

    _has_effects = True

    @property
    def handler(self) -> StoreHandler:
        """The store."""
        return self.Input(0, StoreHandler)

    def key(self, blob: str) -> str:
        """Return the argument `blob_name`, by default the name of the blob itself."""
        name: str = self.GetSingleArgument("blob_name", "")
        return name or blob


@register_operator("StoreSet", inputs="2", outputs="0")
class StoreSet(_OfStore):
    """Set the key `blob_name` (the blob's name) to the value of input 1."""

    def RunOnDevice(self) -> None:
        name = self._definition.inputs[1]
        self.handler.set(self.key(name), serialize(self.InputBlob(1), name, "StoreSet", name))


@register_operator("StoreGet", inputs="1", outputs="1")
class StoreGet(_OfStore):
    """Set the output to the value of the key `blob_name` (the output's name), once it is set.

    Raises EnforceNotMet: it is not set within `timeout_ms` (30,000).
    """

    def RunOnDevice(self) -> None:
        key = self.key(self._definition.outputs[0])
        data = self.handler.get(key, timeout_of(self))
        deserialize(self.OutputBlob(0), data, f"The key {key!r}", "StoreGet")


@register_operator("StoreAdd", inputs="1", outputs="1")
class StoreAdd(_OfStore):
    """Add `add_value` (1) to the counter `blob_name`; the output is its new value, an int64."""

    def RunOnDevice(self) -> None:
        name = self.GetSingleArgument("blob_name", "")
        require(bool(name), "The argument blob_name is missing, the key of the counter.")
        step = self.GetSingleArgument("add_value", 1)
        self.put_value(0, self.handler.add(name, step), c10.int64)


@register_operator("StoreWait", inputs="1-2", outputs="0")
class StoreWait(_OfStore):
    """Wait until all keys are set: the strings of input 1, or the argument `blob_names`.

    Raises EnforceNotMet: they are not within `timeout_ms` (30,000).
    """

    def RunOnDevice(self) -> None:
        names = self.GetRepeatedArgument("blob_names", ())
        if self.InputSize() > 1:
            require(not names, "The names are input 1 or the argument blob_names, not both.")
            names = [name.decode() for name in self.strings(1)]
        self.handler.wait(list(names), timeout_of(self))
