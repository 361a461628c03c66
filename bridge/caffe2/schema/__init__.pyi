# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2 import core as core
from bridge.caffe2 import workspace as workspace
from bridge.caffe2.definitions.blob_reference import BlobReference as BlobReference
from bridge.caffe2.schema.columns import ConstRecord as ConstRecord
from bridge.caffe2.schema.columns import InitEmptyRecord as InitEmptyRecord
from bridge.caffe2.schema.columns import NewRecord as NewRecord
from bridge.caffe2.schema.columns import as_record as as_record
from bridge.caffe2.schema.columns import attach_metadata_to_scalars as attach_metadata_to_scalars
from bridge.caffe2.schema.columns import data_type_for_dtype as data_type_for_dtype
from bridge.caffe2.schema.columns import dtype_for_core_type as dtype_for_core_type
from bridge.caffe2.schema.columns import equal_schemas as equal_schemas
from bridge.caffe2.schema.columns import from_blob_list as from_blob_list
from bridge.caffe2.schema.columns import from_column_list as from_column_list
from bridge.caffe2.schema.columns import from_dtype as from_dtype
from bridge.caffe2.schema.columns import is_schema_subset as is_schema_subset
from bridge.caffe2.schema.columns import schema_check as schema_check
from bridge.caffe2.schema.containers import List as List
from bridge.caffe2.schema.containers import ListWithEvicted as ListWithEvicted
from bridge.caffe2.schema.containers import Map as Map
from bridge.caffe2.schema.containers import MapWithEvicted as MapWithEvicted
from bridge.caffe2.schema.containers import NamedTuple as NamedTuple
from bridge.caffe2.schema.containers import RawTuple as RawTuple
from bridge.caffe2.schema.containers import Struct as Struct
from bridge.caffe2.schema.containers import Tuple as Tuple
from bridge.caffe2.schema.field import FIELD_SEPARATOR as FIELD_SEPARATOR
from bridge.caffe2.schema.field import FeatureSpec as FeatureSpec
from bridge.caffe2.schema.field import Field as Field
from bridge.caffe2.schema.field import Metadata as Metadata
from bridge.caffe2.schema.field import Scalar as Scalar
from bridge.caffe2.workspaces.record_blobs import FeedRecord as FeedRecord
from bridge.caffe2.workspaces.record_blobs import FetchRecord as FetchRecord

__all__ = [
    "BlobReference",
    "ConstRecord",
    "FIELD_SEPARATOR",
    "FeatureSpec",
    "FeedRecord",
    "FetchRecord",
    "Field",
    "InitEmptyRecord",
    "List",
    "ListWithEvicted",
    "Map",
    "MapWithEvicted",
    "Metadata",
    "NamedTuple",
    "NewRecord",
    "RawTuple",
    "Scalar",
    "Struct",
    "Tuple",
    "as_record",
    "attach_metadata_to_scalars",
    "core",
    "data_type_for_dtype",
    "dtype_for_core_type",
    "equal_schemas",
    "from_blob_list",
    "from_column_list",
    "from_dtype",
    "is_schema_subset",
    "schema_check",
    "workspace",
]
