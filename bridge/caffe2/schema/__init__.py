# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.schema``: records, which describe data in columns.

>>> import numpy as np
>>> from bridge.caffe2 import core, schema, workspace
>>> record = schema.Struct(("id", np.int64), ("words", schema.List(str)))
>>> blobs = schema.NewRecord(core.Net("schema_doc"), record)
>>> schema.FeedRecord(blobs, [np.array([7]), np.array([2], np.int32), np.array(["a", "b"])])
>>> schema.FetchRecord(blobs).words.items()
array(['a', 'b'], dtype='<U1')
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.caffe2 import core
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.schema.columns import (
    ConstRecord,
    InitEmptyRecord,
    NewRecord,
    as_record,
    attach_metadata_to_scalars,
    data_type_for_dtype,
    dtype_for_core_type,
    equal_schemas,
    from_blob_list,
    from_column_list,
    from_dtype,
    is_schema_subset,
    schema_check,
)
from bridge.caffe2.schema.containers import (
    List,
    ListWithEvicted,
    Map,
    MapWithEvicted,
    NamedTuple,
    RawTuple,
    Struct,
    Tuple,
)
from bridge.caffe2.schema.field import FIELD_SEPARATOR, FeatureSpec, Field, Metadata, Scalar
from bridge.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import workspace
    from bridge.caffe2.workspaces.record_blobs import FeedRecord, FetchRecord

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

# Loaded at first use: the engine imports modules of this package.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.workspace": "workspace",
        "bridge.caffe2.workspaces.record_blobs": "FeedRecord FetchRecord",
    },
)

if not TYPE_CHECKING:  # type checkers would take any name for one of these
    __getattr__ = _get
