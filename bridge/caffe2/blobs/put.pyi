# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from bridge.caffe2.blobs.core import BlobCore

def put(blob: BlobCore, value: Any) -> None: ...
