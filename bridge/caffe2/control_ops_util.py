# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.control_ops_util``: If and While around nets."""

from __future__ import annotations

from bridge.caffe2.models.control_operators import (
    add_if_op,
    add_while_op,
    get_external_blob_names,
)

__all__ = ["add_if_op", "add_while_op", "get_external_blob_names"]
