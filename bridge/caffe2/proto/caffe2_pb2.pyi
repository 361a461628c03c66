# SPDX-License-Identifier: Apache-2.0
# Made by tools/make_proto.py.
from collections.abc import Iterable as _Iterable
from collections.abc import Mapping as _Mapping
from typing import ClassVar as _ClassVar

from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper

DESCRIPTOR: _descriptor.FileDescriptor

class DeviceTypeProto(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    PROTO_CPU: _ClassVar[DeviceTypeProto]
    PROTO_CUDA: _ClassVar[DeviceTypeProto]
    PROTO_MKLDNN: _ClassVar[DeviceTypeProto]
    PROTO_OPENGL: _ClassVar[DeviceTypeProto]
    PROTO_OPENCL: _ClassVar[DeviceTypeProto]
    PROTO_IDEEP: _ClassVar[DeviceTypeProto]
    PROTO_HIP: _ClassVar[DeviceTypeProto]
    PROTO_FPGA: _ClassVar[DeviceTypeProto]
    PROTO_MSNPU: _ClassVar[DeviceTypeProto]
    PROTO_XLA: _ClassVar[DeviceTypeProto]
    PROTO_COMPILE_TIME_MAX_DEVICE_TYPES: _ClassVar[DeviceTypeProto]

PROTO_CPU: DeviceTypeProto
PROTO_CUDA: DeviceTypeProto
PROTO_MKLDNN: DeviceTypeProto
PROTO_OPENGL: DeviceTypeProto
PROTO_OPENCL: DeviceTypeProto
PROTO_IDEEP: DeviceTypeProto
PROTO_HIP: DeviceTypeProto
PROTO_FPGA: DeviceTypeProto
PROTO_MSNPU: DeviceTypeProto
PROTO_XLA: DeviceTypeProto
PROTO_COMPILE_TIME_MAX_DEVICE_TYPES: DeviceTypeProto

class ExternalDataProto(_message.Message):
    __slots__ = ("offset", "record_id", "record_size", "source_type", "strides")
    class SourceType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        INLINE_CONTAINER: _ClassVar[ExternalDataProto.SourceType]
        SIMPLE_FILE: _ClassVar[ExternalDataProto.SourceType]

    INLINE_CONTAINER: ExternalDataProto.SourceType
    SIMPLE_FILE: ExternalDataProto.SourceType
    SOURCE_TYPE_FIELD_NUMBER: _ClassVar[int]
    RECORD_ID_FIELD_NUMBER: _ClassVar[int]
    RECORD_SIZE_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    STRIDES_FIELD_NUMBER: _ClassVar[int]
    source_type: ExternalDataProto.SourceType
    record_id: str
    record_size: int
    offset: int
    strides: _containers.RepeatedScalarFieldContainer[int]
    def __init__(
        self,
        source_type: ExternalDataProto.SourceType | str | None = ...,
        record_id: str | None = ...,
        record_size: int | None = ...,
        offset: int | None = ...,
        strides: _Iterable[int] | None = ...,
    ) -> None: ...

class TensorProto(_message.Message):
    __slots__ = (
        "byte_data",
        "data_type",
        "device_detail",
        "dims",
        "double_data",
        "external_data",
        "float_data",
        "int32_data",
        "int64_data",
        "name",
        "raw_data",
        "segment",
        "storage_type",
        "string_data",
    )
    class DataType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNDEFINED: _ClassVar[TensorProto.DataType]
        FLOAT: _ClassVar[TensorProto.DataType]
        INT32: _ClassVar[TensorProto.DataType]
        BYTE: _ClassVar[TensorProto.DataType]
        STRING: _ClassVar[TensorProto.DataType]
        BOOL: _ClassVar[TensorProto.DataType]
        UINT8: _ClassVar[TensorProto.DataType]
        INT8: _ClassVar[TensorProto.DataType]
        UINT16: _ClassVar[TensorProto.DataType]
        INT16: _ClassVar[TensorProto.DataType]
        INT64: _ClassVar[TensorProto.DataType]
        FLOAT16: _ClassVar[TensorProto.DataType]
        DOUBLE: _ClassVar[TensorProto.DataType]
        ZERO_COLLISION_HASH: _ClassVar[TensorProto.DataType]

    UNDEFINED: TensorProto.DataType
    FLOAT: TensorProto.DataType
    INT32: TensorProto.DataType
    BYTE: TensorProto.DataType
    STRING: TensorProto.DataType
    BOOL: TensorProto.DataType
    UINT8: TensorProto.DataType
    INT8: TensorProto.DataType
    UINT16: TensorProto.DataType
    INT16: TensorProto.DataType
    INT64: TensorProto.DataType
    FLOAT16: TensorProto.DataType
    DOUBLE: TensorProto.DataType
    ZERO_COLLISION_HASH: TensorProto.DataType
    class StorageType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        TYPED: _ClassVar[TensorProto.StorageType]
        RAW: _ClassVar[TensorProto.StorageType]
        EXTERNAL: _ClassVar[TensorProto.StorageType]
        NO_CONTENT: _ClassVar[TensorProto.StorageType]

    TYPED: TensorProto.StorageType
    RAW: TensorProto.StorageType
    EXTERNAL: TensorProto.StorageType
    NO_CONTENT: TensorProto.StorageType
    class Segment(_message.Message):
        __slots__ = ("begin", "end")
        BEGIN_FIELD_NUMBER: _ClassVar[int]
        END_FIELD_NUMBER: _ClassVar[int]
        begin: int
        end: int
        def __init__(self, begin: int | None = ..., end: int | None = ...) -> None: ...

    DIMS_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    STORAGE_TYPE_FIELD_NUMBER: _ClassVar[int]
    FLOAT_DATA_FIELD_NUMBER: _ClassVar[int]
    INT32_DATA_FIELD_NUMBER: _ClassVar[int]
    BYTE_DATA_FIELD_NUMBER: _ClassVar[int]
    STRING_DATA_FIELD_NUMBER: _ClassVar[int]
    DOUBLE_DATA_FIELD_NUMBER: _ClassVar[int]
    INT64_DATA_FIELD_NUMBER: _ClassVar[int]
    RAW_DATA_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_DETAIL_FIELD_NUMBER: _ClassVar[int]
    SEGMENT_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    data_type: TensorProto.DataType
    storage_type: TensorProto.StorageType
    float_data: _containers.RepeatedScalarFieldContainer[float]
    int32_data: _containers.RepeatedScalarFieldContainer[int]
    byte_data: bytes
    string_data: _containers.RepeatedScalarFieldContainer[bytes]
    double_data: _containers.RepeatedScalarFieldContainer[float]
    int64_data: _containers.RepeatedScalarFieldContainer[int]
    raw_data: bytes
    external_data: ExternalDataProto
    name: str
    device_detail: DeviceOption
    segment: TensorProto.Segment
    def __init__(
        self,
        dims: _Iterable[int] | None = ...,
        data_type: TensorProto.DataType | str | None = ...,
        storage_type: TensorProto.StorageType | str | None = ...,
        float_data: _Iterable[float] | None = ...,
        int32_data: _Iterable[int] | None = ...,
        byte_data: bytes | None = ...,
        string_data: _Iterable[bytes] | None = ...,
        double_data: _Iterable[float] | None = ...,
        int64_data: _Iterable[int] | None = ...,
        raw_data: bytes | None = ...,
        external_data: ExternalDataProto | _Mapping[str, object] | None = ...,
        name: str | None = ...,
        device_detail: DeviceOption | _Mapping[str, object] | None = ...,
        segment: TensorProto.Segment | _Mapping[str, object] | None = ...,
    ) -> None: ...

class QTensorProto(_message.Message):
    __slots__ = (
        "axis",
        "bias",
        "biases",
        "data",
        "data_type",
        "dims",
        "is_multiparam",
        "is_signed",
        "name",
        "precision",
        "scale",
        "scales",
    )
    DIMS_FIELD_NUMBER: _ClassVar[int]
    PRECISION_FIELD_NUMBER: _ClassVar[int]
    SCALE_FIELD_NUMBER: _ClassVar[int]
    BIAS_FIELD_NUMBER: _ClassVar[int]
    IS_SIGNED_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    SCALES_FIELD_NUMBER: _ClassVar[int]
    BIASES_FIELD_NUMBER: _ClassVar[int]
    AXIS_FIELD_NUMBER: _ClassVar[int]
    IS_MULTIPARAM_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    precision: int
    scale: float
    bias: float
    is_signed: bool
    data: _containers.RepeatedScalarFieldContainer[int]
    name: str
    data_type: TensorProto.DataType
    scales: _containers.RepeatedScalarFieldContainer[float]
    biases: _containers.RepeatedScalarFieldContainer[float]
    axis: int
    is_multiparam: bool
    def __init__(
        self,
        dims: _Iterable[int] | None = ...,
        precision: int | None = ...,
        scale: float | None = ...,
        bias: float | None = ...,
        is_signed: bool | None = ...,
        data: _Iterable[int] | None = ...,
        name: str | None = ...,
        data_type: TensorProto.DataType | str | None = ...,
        scales: _Iterable[float] | None = ...,
        biases: _Iterable[float] | None = ...,
        axis: int | None = ...,
        is_multiparam: bool | None = ...,
    ) -> None: ...

class TensorProtos(_message.Message):
    __slots__ = ("protos",)
    PROTOS_FIELD_NUMBER: _ClassVar[int]
    protos: _containers.RepeatedCompositeFieldContainer[TensorProto]
    def __init__(
        self, protos: _Iterable[TensorProto | _Mapping[str, object]] | None = ...
    ) -> None: ...

class TensorShape(_message.Message):
    __slots__ = ("data_type", "dims", "name", "unknown_dims", "unknown_shape")
    DIMS_FIELD_NUMBER: _ClassVar[int]
    DATA_TYPE_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_DIMS_FIELD_NUMBER: _ClassVar[int]
    UNKNOWN_SHAPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    dims: _containers.RepeatedScalarFieldContainer[int]
    data_type: TensorProto.DataType
    unknown_dims: _containers.RepeatedScalarFieldContainer[int]
    unknown_shape: bool
    name: str
    def __init__(
        self,
        dims: _Iterable[int] | None = ...,
        data_type: TensorProto.DataType | str | None = ...,
        unknown_dims: _Iterable[int] | None = ...,
        unknown_shape: bool | None = ...,
        name: str | None = ...,
    ) -> None: ...

class TensorShapes(_message.Message):
    __slots__ = ("shapes",)
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    shapes: _containers.RepeatedCompositeFieldContainer[TensorShape]
    def __init__(
        self, shapes: _Iterable[TensorShape | _Mapping[str, object]] | None = ...
    ) -> None: ...

class TensorBoundShape(_message.Message):
    __slots__ = ("dim_type", "name", "shape", "shape_is_final")
    class DimType(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        UNKNOWN: _ClassVar[TensorBoundShape.DimType]
        CONSTANT: _ClassVar[TensorBoundShape.DimType]
        BATCH: _ClassVar[TensorBoundShape.DimType]
        BATCH_OF_FEATURE_MAX: _ClassVar[TensorBoundShape.DimType]
        BATCH_OF_FEATURE_MAX_DEFAULT: _ClassVar[TensorBoundShape.DimType]
        FEATURE_MAX: _ClassVar[TensorBoundShape.DimType]
        FEATURE_MAX_DEFAULT: _ClassVar[TensorBoundShape.DimType]

    UNKNOWN: TensorBoundShape.DimType
    CONSTANT: TensorBoundShape.DimType
    BATCH: TensorBoundShape.DimType
    BATCH_OF_FEATURE_MAX: TensorBoundShape.DimType
    BATCH_OF_FEATURE_MAX_DEFAULT: TensorBoundShape.DimType
    FEATURE_MAX: TensorBoundShape.DimType
    FEATURE_MAX_DEFAULT: TensorBoundShape.DimType
    SHAPE_FIELD_NUMBER: _ClassVar[int]
    DIM_TYPE_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    SHAPE_IS_FINAL_FIELD_NUMBER: _ClassVar[int]
    shape: TensorShape
    dim_type: _containers.RepeatedScalarFieldContainer[TensorBoundShape.DimType]
    name: str
    shape_is_final: bool
    def __init__(
        self,
        shape: TensorShape | _Mapping[str, object] | None = ...,
        dim_type: _Iterable[TensorBoundShape.DimType | str] | None = ...,
        name: str | None = ...,
        shape_is_final: bool | None = ...,
    ) -> None: ...

class TensorBoundShapes(_message.Message):
    __slots__ = ("max_batch_size", "max_feature_len", "shapes")
    SHAPES_FIELD_NUMBER: _ClassVar[int]
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_FEATURE_LEN_FIELD_NUMBER: _ClassVar[int]
    shapes: _containers.RepeatedCompositeFieldContainer[TensorBoundShape]
    max_batch_size: int
    max_feature_len: int
    def __init__(
        self,
        shapes: _Iterable[TensorBoundShape | _Mapping[str, object]] | None = ...,
        max_batch_size: int | None = ...,
        max_feature_len: int | None = ...,
    ) -> None: ...

class AOTConfig(_message.Message):
    __slots__ = ("in_batch_broadcast", "max_batch_size", "max_seq_size")
    MAX_BATCH_SIZE_FIELD_NUMBER: _ClassVar[int]
    MAX_SEQ_SIZE_FIELD_NUMBER: _ClassVar[int]
    IN_BATCH_BROADCAST_FIELD_NUMBER: _ClassVar[int]
    max_batch_size: int
    max_seq_size: int
    in_batch_broadcast: bool
    def __init__(
        self,
        max_batch_size: int | None = ...,
        max_seq_size: int | None = ...,
        in_batch_broadcast: bool | None = ...,
    ) -> None: ...

class Argument(_message.Message):
    __slots__ = (
        "f",
        "floats",
        "i",
        "ints",
        "n",
        "name",
        "nets",
        "qtensors",
        "s",
        "strings",
        "t",
        "tensors",
    )
    NAME_FIELD_NUMBER: _ClassVar[int]
    F_FIELD_NUMBER: _ClassVar[int]
    I_FIELD_NUMBER: _ClassVar[int]
    S_FIELD_NUMBER: _ClassVar[int]
    T_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    FLOATS_FIELD_NUMBER: _ClassVar[int]
    INTS_FIELD_NUMBER: _ClassVar[int]
    STRINGS_FIELD_NUMBER: _ClassVar[int]
    TENSORS_FIELD_NUMBER: _ClassVar[int]
    NETS_FIELD_NUMBER: _ClassVar[int]
    QTENSORS_FIELD_NUMBER: _ClassVar[int]
    name: str
    f: float
    i: int
    s: bytes
    t: TensorProto
    n: NetDef
    floats: _containers.RepeatedScalarFieldContainer[float]
    ints: _containers.RepeatedScalarFieldContainer[int]
    strings: _containers.RepeatedScalarFieldContainer[bytes]
    tensors: _containers.RepeatedCompositeFieldContainer[TensorProto]
    nets: _containers.RepeatedCompositeFieldContainer[NetDef]
    qtensors: _containers.RepeatedCompositeFieldContainer[QTensorProto]
    def __init__(
        self,
        name: str | None = ...,
        f: float | None = ...,
        i: int | None = ...,
        s: bytes | None = ...,
        t: TensorProto | _Mapping[str, object] | None = ...,
        n: NetDef | _Mapping[str, object] | None = ...,
        floats: _Iterable[float] | None = ...,
        ints: _Iterable[int] | None = ...,
        strings: _Iterable[bytes] | None = ...,
        tensors: _Iterable[TensorProto | _Mapping[str, object]] | None = ...,
        nets: _Iterable[NetDef | _Mapping[str, object]] | None = ...,
        qtensors: _Iterable[QTensorProto | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class DeviceOption(_message.Message):
    __slots__ = (
        "device_id",
        "device_type",
        "extra_info",
        "node_name",
        "numa_node_id",
        "random_seed",
    )
    DEVICE_TYPE_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    RANDOM_SEED_FIELD_NUMBER: _ClassVar[int]
    NODE_NAME_FIELD_NUMBER: _ClassVar[int]
    NUMA_NODE_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRA_INFO_FIELD_NUMBER: _ClassVar[int]
    device_type: int
    device_id: int
    random_seed: int
    node_name: str
    numa_node_id: int
    extra_info: _containers.RepeatedScalarFieldContainer[str]
    def __init__(
        self,
        device_type: int | None = ...,
        device_id: int | None = ...,
        random_seed: int | None = ...,
        node_name: str | None = ...,
        numa_node_id: int | None = ...,
        extra_info: _Iterable[str] | None = ...,
    ) -> None: ...

class OperatorDef(_message.Message):
    __slots__ = (
        "arg",
        "control_input",
        "debug_info",
        "device_option",
        "domain",
        "engine",
        "input",
        "is_gradient_op",
        "name",
        "op_version",
        "output",
        "type",
    )
    INPUT_FIELD_NUMBER: _ClassVar[int]
    OUTPUT_FIELD_NUMBER: _ClassVar[int]
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    ARG_FIELD_NUMBER: _ClassVar[int]
    DEVICE_OPTION_FIELD_NUMBER: _ClassVar[int]
    ENGINE_FIELD_NUMBER: _ClassVar[int]
    CONTROL_INPUT_FIELD_NUMBER: _ClassVar[int]
    IS_GRADIENT_OP_FIELD_NUMBER: _ClassVar[int]
    DEBUG_INFO_FIELD_NUMBER: _ClassVar[int]
    DOMAIN_FIELD_NUMBER: _ClassVar[int]
    OP_VERSION_FIELD_NUMBER: _ClassVar[int]
    input: _containers.RepeatedScalarFieldContainer[str]
    output: _containers.RepeatedScalarFieldContainer[str]
    name: str
    type: str
    arg: _containers.RepeatedCompositeFieldContainer[Argument]
    device_option: DeviceOption
    engine: str
    control_input: _containers.RepeatedScalarFieldContainer[str]
    is_gradient_op: bool
    debug_info: str
    domain: str
    op_version: int
    def __init__(
        self,
        input: _Iterable[str] | None = ...,
        output: _Iterable[str] | None = ...,
        name: str | None = ...,
        type: str | None = ...,
        arg: _Iterable[Argument | _Mapping[str, object]] | None = ...,
        device_option: DeviceOption | _Mapping[str, object] | None = ...,
        engine: str | None = ...,
        control_input: _Iterable[str] | None = ...,
        is_gradient_op: bool | None = ...,
        debug_info: str | None = ...,
        domain: str | None = ...,
        op_version: int | None = ...,
    ) -> None: ...

class MapFieldEntry(_message.Message):
    __slots__ = ("key", "val")
    KEY_FIELD_NUMBER: _ClassVar[int]
    VAL_FIELD_NUMBER: _ClassVar[int]
    key: str
    val: str
    def __init__(self, key: str | None = ..., val: str | None = ...) -> None: ...

class BackendOptions(_message.Message):
    __slots__ = ("backend_name", "option")
    BACKEND_NAME_FIELD_NUMBER: _ClassVar[int]
    OPTION_FIELD_NUMBER: _ClassVar[int]
    backend_name: str
    option: _containers.RepeatedCompositeFieldContainer[MapFieldEntry]
    def __init__(
        self,
        backend_name: str | None = ...,
        option: _Iterable[MapFieldEntry | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class PartitionInfo(_message.Message):
    __slots__ = ("backend_options", "device_id", "extra_info", "name")
    NAME_FIELD_NUMBER: _ClassVar[int]
    DEVICE_ID_FIELD_NUMBER: _ClassVar[int]
    EXTRA_INFO_FIELD_NUMBER: _ClassVar[int]
    BACKEND_OPTIONS_FIELD_NUMBER: _ClassVar[int]
    name: str
    device_id: _containers.RepeatedScalarFieldContainer[int]
    extra_info: str
    backend_options: _containers.RepeatedCompositeFieldContainer[BackendOptions]
    def __init__(
        self,
        name: str | None = ...,
        device_id: _Iterable[int] | None = ...,
        extra_info: str | None = ...,
        backend_options: _Iterable[BackendOptions | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class NetDef(_message.Message):
    __slots__ = (
        "arg",
        "device_option",
        "external_input",
        "external_output",
        "name",
        "num_workers",
        "op",
        "partition_info",
        "type",
    )
    NAME_FIELD_NUMBER: _ClassVar[int]
    OP_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    NUM_WORKERS_FIELD_NUMBER: _ClassVar[int]
    DEVICE_OPTION_FIELD_NUMBER: _ClassVar[int]
    ARG_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_INPUT_FIELD_NUMBER: _ClassVar[int]
    EXTERNAL_OUTPUT_FIELD_NUMBER: _ClassVar[int]
    PARTITION_INFO_FIELD_NUMBER: _ClassVar[int]
    name: str
    op: _containers.RepeatedCompositeFieldContainer[OperatorDef]
    type: str
    num_workers: int
    device_option: DeviceOption
    arg: _containers.RepeatedCompositeFieldContainer[Argument]
    external_input: _containers.RepeatedScalarFieldContainer[str]
    external_output: _containers.RepeatedScalarFieldContainer[str]
    partition_info: _containers.RepeatedCompositeFieldContainer[PartitionInfo]
    def __init__(
        self,
        name: str | None = ...,
        op: _Iterable[OperatorDef | _Mapping[str, object]] | None = ...,
        type: str | None = ...,
        num_workers: int | None = ...,
        device_option: DeviceOption | _Mapping[str, object] | None = ...,
        arg: _Iterable[Argument | _Mapping[str, object]] | None = ...,
        external_input: _Iterable[str] | None = ...,
        external_output: _Iterable[str] | None = ...,
        partition_info: _Iterable[PartitionInfo | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class ExecutionStep(_message.Message):
    __slots__ = (
        "concurrent_substeps",
        "create_workspace",
        "criteria_network",
        "name",
        "network",
        "num_concurrent_instances",
        "num_iter",
        "only_once",
        "report_interval",
        "report_net",
        "run_every_ms",
        "should_stop_blob",
        "substep",
    )
    NAME_FIELD_NUMBER: _ClassVar[int]
    SUBSTEP_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    NUM_ITER_FIELD_NUMBER: _ClassVar[int]
    CRITERIA_NETWORK_FIELD_NUMBER: _ClassVar[int]
    REPORT_NET_FIELD_NUMBER: _ClassVar[int]
    REPORT_INTERVAL_FIELD_NUMBER: _ClassVar[int]
    RUN_EVERY_MS_FIELD_NUMBER: _ClassVar[int]
    CONCURRENT_SUBSTEPS_FIELD_NUMBER: _ClassVar[int]
    SHOULD_STOP_BLOB_FIELD_NUMBER: _ClassVar[int]
    ONLY_ONCE_FIELD_NUMBER: _ClassVar[int]
    CREATE_WORKSPACE_FIELD_NUMBER: _ClassVar[int]
    NUM_CONCURRENT_INSTANCES_FIELD_NUMBER: _ClassVar[int]
    name: str
    substep: _containers.RepeatedCompositeFieldContainer[ExecutionStep]
    network: _containers.RepeatedScalarFieldContainer[str]
    num_iter: int
    criteria_network: str
    report_net: str
    report_interval: int
    run_every_ms: int
    concurrent_substeps: bool
    should_stop_blob: str
    only_once: bool
    create_workspace: bool
    num_concurrent_instances: int
    def __init__(
        self,
        name: str | None = ...,
        substep: _Iterable[ExecutionStep | _Mapping[str, object]] | None = ...,
        network: _Iterable[str] | None = ...,
        num_iter: int | None = ...,
        criteria_network: str | None = ...,
        report_net: str | None = ...,
        report_interval: int | None = ...,
        run_every_ms: int | None = ...,
        concurrent_substeps: bool | None = ...,
        should_stop_blob: str | None = ...,
        only_once: bool | None = ...,
        create_workspace: bool | None = ...,
        num_concurrent_instances: int | None = ...,
    ) -> None: ...

class PlanDef(_message.Message):
    __slots__ = ("execution_step", "name", "network")
    NAME_FIELD_NUMBER: _ClassVar[int]
    NETWORK_FIELD_NUMBER: _ClassVar[int]
    EXECUTION_STEP_FIELD_NUMBER: _ClassVar[int]
    name: str
    network: _containers.RepeatedCompositeFieldContainer[NetDef]
    execution_step: _containers.RepeatedCompositeFieldContainer[ExecutionStep]
    def __init__(
        self,
        name: str | None = ...,
        network: _Iterable[NetDef | _Mapping[str, object]] | None = ...,
        execution_step: _Iterable[ExecutionStep | _Mapping[str, object]] | None = ...,
    ) -> None: ...

class BlobProto(_message.Message):
    __slots__ = (
        "content",
        "content_chunk_id",
        "content_num_chunks",
        "name",
        "qtensor",
        "tensor",
        "type",
    )
    NAME_FIELD_NUMBER: _ClassVar[int]
    TYPE_FIELD_NUMBER: _ClassVar[int]
    TENSOR_FIELD_NUMBER: _ClassVar[int]
    CONTENT_FIELD_NUMBER: _ClassVar[int]
    QTENSOR_FIELD_NUMBER: _ClassVar[int]
    CONTENT_NUM_CHUNKS_FIELD_NUMBER: _ClassVar[int]
    CONTENT_CHUNK_ID_FIELD_NUMBER: _ClassVar[int]
    name: str
    type: str
    tensor: TensorProto
    content: bytes
    qtensor: QTensorProto
    content_num_chunks: int
    content_chunk_id: int
    def __init__(
        self,
        name: str | None = ...,
        type: str | None = ...,
        tensor: TensorProto | _Mapping[str, object] | None = ...,
        content: bytes | None = ...,
        qtensor: QTensorProto | _Mapping[str, object] | None = ...,
        content_num_chunks: int | None = ...,
        content_chunk_id: int | None = ...,
    ) -> None: ...

class DBReaderProto(_message.Message):
    __slots__ = ("db_type", "key", "name", "source")
    NAME_FIELD_NUMBER: _ClassVar[int]
    SOURCE_FIELD_NUMBER: _ClassVar[int]
    DB_TYPE_FIELD_NUMBER: _ClassVar[int]
    KEY_FIELD_NUMBER: _ClassVar[int]
    name: str
    source: str
    db_type: str
    key: str
    def __init__(
        self,
        name: str | None = ...,
        source: str | None = ...,
        db_type: str | None = ...,
        key: str | None = ...,
    ) -> None: ...

CPU: DeviceTypeProto
CUDA: DeviceTypeProto
MKLDNN: DeviceTypeProto
OPENGL: DeviceTypeProto
OPENCL: DeviceTypeProto
IDEEP: DeviceTypeProto
HIP: DeviceTypeProto
FPGA: DeviceTypeProto
MSNPU: DeviceTypeProto
XLA: DeviceTypeProto
COMPILE_TIME_MAX_DEVICE_TYPES: DeviceTypeProto
