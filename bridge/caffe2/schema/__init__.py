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

from bridge.lazy import lazily

# Loaded at first use: the engine imports modules of this package.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.core": "core",
        "bridge.caffe2.definitions.blob_reference": "BlobReference",
        "bridge.caffe2.schema.columns": (
            "ConstRecord InitEmptyRecord NewRecord as_record attach_metadata_to_scalars "
            "data_type_for_dtype dtype_for_core_type equal_schemas from_blob_list from_column_list "
            "from_dtype is_schema_subset schema_check"
        ),
        "bridge.caffe2.schema.containers": (
            "List ListWithEvicted Map MapWithEvicted NamedTuple RawTuple Struct Tuple"
        ),
        "bridge.caffe2.schema.field": "FIELD_SEPARATOR FeatureSpec Field Metadata Scalar",
        "bridge.caffe2.workspace": "workspace",
        "bridge.caffe2.workspaces.record_blobs": "FeedRecord FetchRecord",
    },
)
