# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_proto.py.
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers

from bridge.caffe2.proto import caffe2_pb2 as _caffe2_pb2

DESCRIPTOR: _descriptor.FileDescriptor

class ModelInfo(_message.Message):
    __slots__ = ("modelClass", "modelId", "predictorType", "project", "version")
    PROJECT_FIELD_NUMBER: _ClassVar[int]
    MODELCLASS_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    PREDICTORTYPE_FIELD_NUMBER: _ClassVar[int]
    MODELID_FIELD_NUMBER: _ClassVar[int]
    project: str
    modelClass: str
    version: str
    predictorType: str
    modelId: str
    def __init__(
        self,
        project: str | None = ...,
        modelClass: str | None = ...,
        version: str | None = ...,
        predictorType: str | None = ...,
        modelId: str | None = ...,
    ) -> None: ...

class BlobsMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, key: str | None = ..., value: _Iterable[str] | None = ...) -> None: ...

class NetsMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _caffe2_pb2.NetDef
    def __init__(
        self, key: str | None = ..., value: _caffe2_pb2.NetDef | _Mapping[str, object] | None = ...
    ) -> None: ...

class PlansMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: _caffe2_pb2.PlanDef
    def __init__(
        self, key: str | None = ..., value: _caffe2_pb2.PlanDef | _Mapping[str, object] | None = ...
    ) -> None: ...

class StringMap(_message.Message):
    __slots__ = ("key", "value")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VALUE_FIELD_NUMBER: _ClassVar[int]
    key: str
    value: str
    def __init__(self, key: str | None = ..., value: str | None = ...) -> None: ...

class MetaNetDef(_message.Message):
    __slots__ = (
        "aotConfig",
        "applicationSpecificInfo",
        "blobs",
        "blobsOrder",
        "modelInfo",
        "nets",
        "plans",
        "preLoadBlobs",
        "requestOnlyEmbeddings",
        "tensorBoundShapes",
    )
    BLOBS_FIELD_NUMBER: _ClassVar[int]
    NETS_FIELD_NUMBER: _ClassVar[int]
    MODELINFO_FIELD_NUMBER: _ClassVar[int]
    PLANS_FIELD_NUMBER: _ClassVar[int]
    APPLICATIONSPECIFICINFO_FIELD_NUMBER: _ClassVar[int]
    BLOBSORDER_FIELD_NUMBER: _ClassVar[int]
    PRELOADBLOBS_FIELD_NUMBER: _ClassVar[int]
    TENSORBOUNDSHAPES_FIELD_NUMBER: _ClassVar[int]
    REQUESTONLYEMBEDDINGS_FIELD_NUMBER: _ClassVar[int]
    AOTCONFIG_FIELD_NUMBER: _ClassVar[int]
    blobs: _containers.RepeatedCompositeFieldContainer[BlobsMap]
    nets: _containers.RepeatedCompositeFieldContainer[NetsMap]
    modelInfo: ModelInfo
    plans: _containers.RepeatedCompositeFieldContainer[PlansMap]
    applicationSpecificInfo: _containers.RepeatedCompositeFieldContainer[StringMap]
    blobsOrder: _containers.RepeatedScalarFieldContainer[str]
    preLoadBlobs: _containers.RepeatedScalarFieldContainer[str]
    tensorBoundShapes: _caffe2_pb2.TensorBoundShapes
    requestOnlyEmbeddings: _containers.RepeatedScalarFieldContainer[str]
    aotConfig: _caffe2_pb2.AOTConfig
    def __init__(
        self,
        blobs: _Iterable[BlobsMap | _Mapping[str, object]] | None = ...,
        nets: _Iterable[NetsMap | _Mapping[str, object]] | None = ...,
        modelInfo: ModelInfo | _Mapping[str, object] | None = ...,
        plans: _Iterable[PlansMap | _Mapping[str, object]] | None = ...,
        applicationSpecificInfo: _Iterable[StringMap | _Mapping[str, object]] | None = ...,
        blobsOrder: _Iterable[str] | None = ...,
        preLoadBlobs: _Iterable[str] | None = ...,
        tensorBoundShapes: _caffe2_pb2.TensorBoundShapes | _Mapping[str, object] | None = ...,
        requestOnlyEmbeddings: _Iterable[str] | None = ...,
        aotConfig: _caffe2_pb2.AOTConfig | _Mapping[str, object] | None = ...,
    ) -> None: ...
