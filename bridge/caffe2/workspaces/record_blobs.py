# SPDX-License-Identifier: Apache-2.0
"""FetchRecord and FeedRecord: the blobs of a record, all at once."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.schema.columns import from_blob_list, required_blobs
from bridge.caffe2.schema.field import Field
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob


def FetchRecord(blob_record: Field, ws: Any = None, throw_on_type_mismatch: bool = False) -> Any:
    """Return a copy of a record of blobs with their values as arrays.

    ws: a Workspace; None is the current one. Raises EnforceNotMet: a value of the record is not a
    BlobReference, or with `throw_on_type_mismatch` a blob has another type than its field (also an
    AssertionError); a blob does not exist.
    """
    values = [
        FetchBlob(str(blob)) if ws is None else ws.blobs[str(blob)].fetch()
        for blob in required_blobs(blob_record, "FetchRecord")
    ]
    return from_blob_list(blob_record, values, throw_on_type_mismatch)


def FeedRecord(blob_record: Field, arrays: Any, ws: Any = None) -> None:
    """Set the blobs of a record to arrays: a list of them, or a record of them.

    ws: a Workspace; None is the current one. Raises EnforceNotMet, also an AssertionError: a value
    of the record is not a BlobReference, or the numbers differ; nothing is fed then.
    """
    caller = "FeedRecord"
    blobs = required_blobs(blob_record, caller)
    values = arrays.field_blobs() if isinstance(arrays, Field) else arrays
    if len(values) != len(blobs):
        raise EnforceAssertionError(
            f"Values must contain exactly {len(blobs)} ndarrays; got {len(values)}.", caller
        )
    for blob, value in zip(blobs, values, strict=True):
        if ws is None:
            FeedBlob(str(blob), value)
        else:
            ws.create_blob(str(blob)).feed(value)
