# SPDX-License-Identifier: Apache-2.0
"""Counters, indexes, maps, mutexes and cursors as Caffe2's messages.

Follows counter_ops.cc, index_ops.cc, map_ops.h, atomic_ops.cc and dataset_ops.cc in
caffe2/operators, PyTorch 1.8.1, which writes the pairs of a map in the order of a hash table; here
they are in the order in which they were added.
"""

from __future__ import annotations

from collections.abc import Callable

from bridge import c10
from bridge.annotation import Any
from bridge.c10 import TypeMeta
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.core import BlobCore
from bridge.caffe2.blobs.message import BlobMessage
from bridge.caffe2.blobs.objects import Counter, Fields, Index, Map, Mutex, TreeCursor
from bridge.caffe2.blobs.read_tensor import read_tensor
from bridge.caffe2.blobs.write_tensor import tensor_messages
from bridge.caffe2.tensor.tensor import Tensor

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


def object_message(obj: Any, name: bytes) -> bytes | None:
    """Return an object as a BlobProto with this name; None: its class has no message."""
    write = _WRITERS.get(type(obj))
    if write is None:
        return None
    message = caffe2_pb2().BlobProto()
    message.name = name.decode("utf-8", "surrogateescape")
    write(obj, message)
    data: bytes = message.SerializeToString(deterministic=True)
    return data


def object_of(type_name: bytes, data: Any) -> Any:
    """Return the object in the BlobProto `data`; None: unknown type.

    type_name: the message's type. Raises EnforceNotMet, or protobuf's error: an invalid message.
    """
    read = _READERS.get(type_name)
    return None if read is None else read(caffe2_pb2().BlobProto.FromString(bytes(data)))


def tensor_of(message: Any) -> Tensor:
    """Return a copy of the tensor in a TensorProto, on the CPU. Raises as `read_tensor`."""
    whole = caffe2_pb2().BlobProto()
    whole.type = "Tensor"
    whole.tensor.CopyFrom(message)
    whole.tensor.ClearField("device_detail")
    blob = BlobCore()
    read_tensor(blob, BlobMessage(whole.SerializeToString()), None)
    assert blob._tensor is not None
    return blob._tensor


def _list_message(items: list[Any], dtype: TypeMeta) -> Any:
    """Return a list of numbers or strings as a TensorProto."""
    tensor = Tensor([len(items)], "cpu")
    tensor.mutable_data(dtype)[:] = items
    ((_, data),) = tensor_messages(tensor, b"", None)
    message = caffe2_pb2().BlobProto.FromString(data).tensor
    message.ClearField("name")
    return message


def _list_of(message: Any, *types: TypeMeta) -> tuple[list[Any], TypeMeta]:
    """Return the items of a TensorProto and their type, which must be one of `types`."""
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
    message.tensor.CopyFrom(_list_message(list(index.places), index.dtype))
    message.content = f"{index.most} {int(index.frozen)}".encode()


def _read_index(message: Any) -> Index:
    keys, dtype = _list_of(message.tensor, c10.int32, c10.int64, c10.string)
    words = message.content.split()
    if len(words) != 2 or not all(word.isdigit() for word in words):
        raise EnforceNotMet(
            f"the content of an index is its capacity and whether it is frozen, not {words}"
        )
    index = Index(dtype, int(words[0]))
    index.places = {key: i for i, key in enumerate(keys, 1)}
    index.frozen = bool(int(words[1]))
    if len(index.places) != len(keys):
        raise EnforceNotMet("the index has a key twice")
    if len(keys) > index.most:
        raise EnforceNotMet(f"{len(keys)} keys are more than the {index.most} that the index takes")
    return index


def _write_map(pairs: Map, message: Any) -> None:
    names = {types: name for name, types in _MAPS.items()}
    message.type = names[pairs.keys, pairs.values].decode()
    lists = caffe2_pb2().TensorProtos()
    lists.protos.append(_list_message(list(pairs.items), pairs.keys))
    lists.protos.append(_list_message(list(pairs.items.values()), pairs.values))
    message.content = lists.SerializeToString()


def _read_map(message: Any) -> Map:
    types = _MAPS[message.type.encode()]
    protos = caffe2_pb2().TensorProtos.FromString(message.content).protos
    if len(protos) != 2:
        raise EnforceNotMet(f"a map is two tensors, keys and values, not {len(protos)}")
    keys, values = (_list_of(one, dtype)[0] for one, dtype in zip(protos, types, strict=True))
    if len(keys) != len(values):
        raise EnforceNotMet(f"the map has {len(keys)} keys and {len(values)} values")
    pairs = Map(*types)
    for key, value in zip(keys, values, strict=True):
        pairs.items.setdefault(key, value)
    return pairs


def _write_mutex(_: Mutex, message: Any) -> None:
    message.type = _MUTEX.decode()
    message.content = b""


def _read_mutex(_: Any) -> Mutex:
    return Mutex()


def _write_cursor(cursor: TreeCursor, message: Any) -> None:
    message.type = _CURSOR.decode()
    if cursor.offsets:
        message.tensor.CopyFrom(_list_message(cursor.offsets, c10.int64))
    message.content = "".join(f"{name} " for name in cursor.fields.names).encode()


def _read_cursor(message: Any) -> TreeCursor:
    cursor = TreeCursor(Fields(message.content.decode().split()))
    if message.HasField("tensor"):
        cursor.offsets, _ = _list_of(message.tensor, c10.int64)
    if len(cursor.offsets) not in (0, 1, cursor.fields.n_domains):
        raise EnforceNotMet(
            f"a cursor of {cursor.fields.n_domains} domains has {len(cursor.offsets)} offsets"
        )
    return cursor


_WRITERS: dict[type, Callable[[Any, Any], None]] = {
    Counter: _write_counter,
    Index: _write_index,
    Map: _write_map,
    Mutex: _write_mutex,
    TreeCursor: _write_cursor,
}
_READERS: dict[bytes, Callable[[Any], Any]] = {
    _COUNTER: _read_counter,
    _INDEX: _read_index,
    **dict.fromkeys(_MAPS, _read_map),
    _MUTEX: _read_mutex,
    _CURSOR: _read_cursor,
}
