# SPDX-License-Identifier: Apache-2.0
"""Counters, indexes, maps, mutexes and cursors in Caffe2's messages, and so in its files.

Follows counter_ops.cc, index_ops.cc, map_ops.h, atomic_ops.cc and dataset_ops.cc in
caffe2/operators, PyTorch 1.8.1. The pairs of a map stand there in the order of a hash table, here
in which they came.
"""

from __future__ import annotations

from bridge import c10
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.deserialize import read_message
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.object_forms import register_form
from bridge.caffe2.blobs.serialize import serialize
from bridge.caffe2.operators.datasets.tree_cursor import Fields, TreeCursor
from bridge.caffe2.operators.objects.index import Index
from bridge.caffe2.operators.objects.objects import Counter, Map, Mutex
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from bridge.c10 import TypeMeta

__all__ = ["list_message", "list_of", "tensor_of"]

_COUNTER = b"std::unique_ptr<Counter<int64_t>>"
_INDEX = b"std::unique_ptr<caffe2::IndexBase>"
_MUTEX = b"std::unique_ptr<std::mutex>"
_CURSOR = b"std::unique_ptr<TreeCursor>"
_KINDS = {"int32_t": c10.int32, "int64_t": c10.int64}
_MAPS = {
    f"(std::unordered_map<{k}, {v}>)".encode(): (_KINDS[k], _KINDS[v])
    for k in _KINDS
    for v in _KINDS
}


def list_message(items: list[Any], dtype: TypeMeta) -> Any:
    """Return a list of numbers or strings as a TensorProto."""
    blob = Blob()
    tensor = Tensor([len(items)], "cpu")
    tensor.mutable_data(dtype)[:] = items
    blob._hold_tensor(tensor, own=True)
    made = caffe2_pb2().BlobProto.FromString(serialize(blob, "", "Blob.serialize")).tensor
    made.ClearField("name")
    return made


def tensor_of(message: Any) -> Tensor:
    """Return what a TensorProto says as a tensor on the CPU, copied."""
    whole = caffe2_pb2().BlobProto()
    whole.type = "Tensor"
    whole.tensor.CopyFrom(message)
    whole.tensor.ClearField("device_detail")
    blob = Blob()
    read_message(blob, BlobMessage(whole.SerializeToString()))
    found: Tensor = blob.Get(c10.tensor)
    return found


def list_of(message: Any, *types: TypeMeta) -> tuple[list[Any], TypeMeta]:
    """Return the items that a TensorProto has, and their type, one of `types`."""
    tensor = tensor_of(message)
    dtype = tensor.dtype()
    if dtype not in types or tensor.dim() != 1:
        raise EnforceValueError(
            f"a list of {' or '.join(one.name for one in types)} is expected, not "
            f"{tensor.dim()} dimensions of {dtype}"
        )
    items = tensor.data(dtype)[:]
    return (items if isinstance(items, list) else items.tolist()), dtype


def _write_counter(counter: Counter, message: Any) -> None:
    message.type = _COUNTER.decode()
    message.tensor.dims.append(1)
    message.tensor.data_type = caffe2_pb2().TensorProto.INT64
    message.tensor.name = message.name
    message.tensor.int64_data.append(counter.count)


def _read_counter(message: Any) -> Counter:
    tensor = message.tensor
    if list(tensor.dims) != [1] or len(tensor.int64_data) != 1:
        raise EnforceNotMet(f"a counter is one int64, not {len(tensor.int64_data)}")
    return Counter(tensor.int64_data[0])


def _write_index(index: Index, message: Any) -> None:
    message.type = _INDEX.decode()
    message.tensor.CopyFrom(list_message(list(index.places), index.dtype))
    message.content = f"{index.most} {int(index.frozen)}".encode()


def _read_index(message: Any) -> Index:
    keys, dtype = list_of(message.tensor, c10.int32, c10.int64, c10.string)
    words = message.content.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise EnforceNotMet(
            f"an index says how many it takes and whether it is frozen, not {words}"
        )
    index = Index(dtype, int(words[0]))
    index.places = {key: i for i, key in enumerate(keys, 1)}
    index.frozen = bool(int(words[1]))
    if len(index.places) != len(keys):
        raise EnforceNotMet("a key of the index comes twice")
    if len(keys) > index.most:
        raise EnforceNotMet(f"{len(keys)} keys are more than the {index.most} that an index takes")
    return index


def _write_map(held: Map, message: Any) -> None:
    names = {types: name for name, types in _MAPS.items()}
    message.type = names[held.keys, held.values].decode()
    pair = caffe2_pb2().TensorProtos()
    pair.protos.append(list_message(list(held.items), held.keys))
    pair.protos.append(list_message(list(held.items.values()), held.values))
    message.content = pair.SerializeToString()


def _read_map(message: Any) -> Map:
    keys, values = _MAPS[message.type.encode()]
    pair = caffe2_pb2().TensorProtos.FromString(message.content)
    if len(pair.protos) != 2:
        raise EnforceNotMet(f"a map is two tensors, keys and values, not {len(pair.protos)}")
    lists = [list_of(one, dtype)[0] for one, dtype in zip(pair.protos, (keys, values), strict=True)]
    if len(lists[0]) != len(lists[1]):
        raise EnforceNotMet(f"{len(lists[0])} keys are given {len(lists[1])} values")
    made = Map(keys, values)
    for key, value in zip(*lists, strict=True):
        made.items.setdefault(key, value)
    return made


def _write_mutex(_: Mutex, message: Any) -> None:
    message.type = _MUTEX.decode()
    message.content = b""


def _read_mutex(_: Any) -> Mutex:
    return Mutex()


def _write_cursor(cursor: TreeCursor, message: Any) -> None:
    message.type = _CURSOR.decode()
    if cursor.offsets:
        message.tensor.CopyFrom(list_message(cursor.offsets, c10.int64))
    message.content = "".join(f"{name} " for name in cursor.fields.names).encode()


def _read_cursor(message: Any) -> TreeCursor:
    cursor = TreeCursor(Fields(message.content.decode().split()))
    if message.HasField("tensor"):
        cursor.offsets, _ = list_of(message.tensor, c10.int64)
    if len(cursor.offsets) not in (0, 1, cursor.fields.n_domains):
        raise EnforceNotMet(
            f"a cursor of {cursor.fields.n_domains} domains has {len(cursor.offsets)} offsets"
        )
    return cursor


register_form(Counter, [_COUNTER], _write_counter, _read_counter)
register_form(Index, [_INDEX], _write_index, _read_index)
register_form(Map, list(_MAPS), _write_map, _read_map)
register_form(Mutex, [_MUTEX], _write_mutex, _read_mutex)
register_form(TreeCursor, [_CURSOR], _write_cursor, _read_cursor)
