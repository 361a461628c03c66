# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_proto.py.
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message

DESCRIPTOR: _descriptor.FileDescriptor

class PredictorConsts(_message.Message):
    __slots__ = (
        "DEFERRED_BLOB_READER",
        "GLOBAL_INIT_NET_TYPE",
        "INPUTS_BLOB_TYPE",
        "META_NET_DEF",
        "MULTI_PREDICTOR",
        "OUTPUTS_BLOB_TYPE",
        "PARAMETERS_BLOB_TYPE",
        "PREDICTOR_DBREADER",
        "PREDICT_INIT_NET_TYPE",
        "PREDICT_NET_TYPE",
        "SHAPE_INFO_BLOB",
        "SINGLE_PREDICTOR",
        "TRAIN_INIT_PLAN_TYPE",
        "TRAIN_PLAN_TYPE",
    )
    META_NET_DEF_FIELD_NUMBER: _ClassVar[int]
    PREDICTOR_DBREADER_FIELD_NUMBER: _ClassVar[int]
    PARAMETERS_BLOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    INPUTS_BLOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    OUTPUTS_BLOB_TYPE_FIELD_NUMBER: _ClassVar[int]
    GLOBAL_INIT_NET_TYPE_FIELD_NUMBER: _ClassVar[int]
    PREDICT_INIT_NET_TYPE_FIELD_NUMBER: _ClassVar[int]
    PREDICT_NET_TYPE_FIELD_NUMBER: _ClassVar[int]
    SINGLE_PREDICTOR_FIELD_NUMBER: _ClassVar[int]
    MULTI_PREDICTOR_FIELD_NUMBER: _ClassVar[int]
    TRAIN_INIT_PLAN_TYPE_FIELD_NUMBER: _ClassVar[int]
    TRAIN_PLAN_TYPE_FIELD_NUMBER: _ClassVar[int]
    SHAPE_INFO_BLOB_FIELD_NUMBER: _ClassVar[int]
    DEFERRED_BLOB_READER_FIELD_NUMBER: _ClassVar[int]
    META_NET_DEF: str
    PREDICTOR_DBREADER: str
    PARAMETERS_BLOB_TYPE: str
    INPUTS_BLOB_TYPE: str
    OUTPUTS_BLOB_TYPE: str
    GLOBAL_INIT_NET_TYPE: str
    PREDICT_INIT_NET_TYPE: str
    PREDICT_NET_TYPE: str
    SINGLE_PREDICTOR: str
    MULTI_PREDICTOR: str
    TRAIN_INIT_PLAN_TYPE: str
    TRAIN_PLAN_TYPE: str
    SHAPE_INFO_BLOB: str
    DEFERRED_BLOB_READER: str
    def __init__(
        self,
        META_NET_DEF: str | None = ...,
        PREDICTOR_DBREADER: str | None = ...,
        PARAMETERS_BLOB_TYPE: str | None = ...,
        INPUTS_BLOB_TYPE: str | None = ...,
        OUTPUTS_BLOB_TYPE: str | None = ...,
        GLOBAL_INIT_NET_TYPE: str | None = ...,
        PREDICT_INIT_NET_TYPE: str | None = ...,
        PREDICT_NET_TYPE: str | None = ...,
        SINGLE_PREDICTOR: str | None = ...,
        MULTI_PREDICTOR: str | None = ...,
        TRAIN_INIT_PLAN_TYPE: str | None = ...,
        TRAIN_PLAN_TYPE: str | None = ...,
        SHAPE_INFO_BLOB: str | None = ...,
        DEFERRED_BLOB_READER: str | None = ...,
    ) -> None: ...
