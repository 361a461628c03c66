# SPDX-License-Identifier: Apache-2.0
"""Feeding and fetching blobs of any workspace by name; `workspace.FeedBlob` uses the current one.

In each function `name` may be a str, bytes or a BlobReference, and `caller` is the name of the
public function, for errors. All raise EnforceNotMet if `name` is not a name.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10 import reports
from bridge.c10.errors import EnforceAssertionError, EnforceKeyError
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.blobs.feed import feed
from bridge.caffe2.blobs.int8 import Int8Tensor, Int8TensorCPU
from bridge.caffe2.blobs.put_by_type import is_array
from bridge.caffe2.definitions.scope import CurrentDeviceScope, open_device_scopes
from bridge.caffe2.execution.blob_table import BlobTable, find_blob, put_new
from bridge.caffe2.workspaces.current import current


def find_named(workspace: BlobTable, name: Any, caller: str) -> Blob:
    """Return the blob `name`. Raises EnforceNotMet, also a KeyError: there is no such blob."""
    text = name_of(name, caller)
    blob = find_blob(workspace, text)
    if blob is None:
        raise _missing(workspace, text, caller)
    return blob


def _missing(workspace: BlobTable, text: str, caller: str) -> EnforceKeyError:
    is_current = workspace is current.workspace
    here = f"workspace {current.name!r}" if is_current else "the workspace"
    others = [other for other, ws in list(current.workspaces.items()) if text in ws._blobs]
    hint = f" There is one in the workspace {listed(others)}: SwitchWorkspace." if others else ""
    return EnforceKeyError(
        f"There is no blob {text!r} in {here}, which has {listed(workspace._blobs)}.{hint} Feed it "
        "first by FeedBlob(name, value), or create an empty one by CreateBlob(name).",
        caller,
        condition="HasBlob(name)",
    )


def feed_named(
    workspace: BlobTable, name: Any, value: Any, device_option: Any, caller: str
) -> bool:
    """Feed the blob `name`; return True. A new blob gets its name once it holds the value."""
    text = name_of(name, caller)
    if reports.outermost() and not isinstance(value, (bytes, str)):
        target = f"blob {text!r}"
        return reports.observe_call(
            caller, value, target, feed_named, workspace, name, value, device_option, caller
        )
    if device_option is None and open_device_scopes and is_array(value):
        device_option = CurrentDeviceScope()
    known = find_blob(workspace, text)
    blob = Blob() if known is None else known
    feed(blob, value, device_option, text, caller)
    if known is None:
        put_new(workspace._blobs, text, blob)
    return True


def fetch_named(workspace: BlobTable, name: Any, caller: str) -> Any:
    """Return a copy of the value of the blob `name`, as `Blob.fetch`.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or nothing to fetch.
    """
    return find_named(workspace, name, caller)._fetch(name, caller)


def fetch_int8_named(workspace: BlobTable, name: Any, caller: str) -> Int8Tensor:
    """Return a copy of the quantized tensor of the blob `name`.

    Raises EnforceNotMet: there is no such blob (also a KeyError), or it holds something else (also
    an AssertionError).
    """
    blob = find_named(workspace, name, caller)
    if not isinstance(blob._object, Int8TensorCPU):
        raise EnforceAssertionError(
            f"{blob._describe(name)}, not a quantized tensor; use FetchBlob.", caller
        )
    fetched: Int8Tensor = blob._fetch(name, caller)
    return fetched
