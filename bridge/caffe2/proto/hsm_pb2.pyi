# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_proto.py.
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers

DESCRIPTOR: _descriptor.FileDescriptor

class NodeProto(_message.Message):
    __slots__ = ("children", "name", "offset", "scores", "word_ids")
    CHILDREN_FIELD_NUMBER: _ClassVar[int]
    WORD_IDS_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    children: _containers.RepeatedCompositeFieldContainer[NodeProto]
    word_ids: _containers.RepeatedScalarFieldContainer[int]
    offset: int
    name: str
    scores: _containers.RepeatedScalarFieldContainer[float]
    def __init__(
        self,
        children: _Iterable[NodeProto | _Mapping[str, object]] | None = ...,
        word_ids: _Iterable[int] | None = ...,
        offset: int | None = ...,
        name: str | None = ...,
        scores: _Iterable[float] | None = ...,
    ) -> None: ...

class TreeProto(_message.Message):
    __slots__ = ("root_node",)
    ROOT_NODE_FIELD_NUMBER: _ClassVar[int]
    root_node: NodeProto
    def __init__(self, root_node: NodeProto | _Mapping[str, object] | None = ...) -> None: ...

class HierarchyProto(_message.Message):
    __slots__ = ("paths", "size")
    SIZE_FIELD_NUMBER: _ClassVar[int]
    PATHS_FIELD_NUMBER: _ClassVar[int]
    size: int
    paths: _containers.RepeatedCompositeFieldContainer[PathProto]
    def __init__(
        self,
        size: int | None = ...,
        paths: _Iterable[PathProto | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class PathProto(_message.Message):
    __slots__ = ("path_nodes", "word_id")
    WORD_ID_FIELD_NUMBER: _ClassVar[int]
    PATH_NODES_FIELD_NUMBER: _ClassVar[int]
    word_id: int
    path_nodes: _containers.RepeatedCompositeFieldContainer[PathNodeProto]
    def __init__(
        self,
        word_id: int | None = ...,
        path_nodes: _Iterable[PathNodeProto | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class PathNodeProto(_message.Message):
    __slots__ = ("index", "length", "target")
    INDEX_FIELD_NUMBER: _ClassVar[int]
    LENGTH_FIELD_NUMBER: _ClassVar[int]
    TARGET_FIELD_NUMBER: _ClassVar[int]
    index: int
    length: int
    target: int
    def __init__(
        self, index: int | None = ..., length: int | None = ..., target: int | None = ...
    ) -> None: ...
