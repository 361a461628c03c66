# SPDX-License-Identifier: Apache-2.0
"""The functions of `brew` that run models within a model.

Follows caffe2/python/helpers/control_ops.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from bridge.annotation import Any
from bridge.caffe2.brew.helpers import helper
from bridge.caffe2.core.control_ops_util import add_if_op, add_while_op
from bridge.caffe2.modeling.model_helper import ModelHelper


@helper
def cond(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Any,
    then_model: ModelHelper,
    else_model: ModelHelper | None = None,
) -> None:
    """Add If, which runs the net of one of two models.

    external_blobs: the blobs of `model` that they may use; see `add_if_op`.
    """
    other = else_model.net if else_model else None
    add_if_op(model.net, cond_blob, external_blobs, then_model.net, other)


@helper
def loop(
    model: ModelHelper,
    cond_blob: Any,
    external_blobs: Any,
    loop_model: ModelHelper,
    cond_model: ModelHelper | None = None,
) -> None:
    """Add While, which runs the net of a model as long as a condition holds.

    external_blobs: the blobs of `model` that it may use. cond_model: a model that computes the
    condition before each run; see `add_while_op`.
    """
    other = cond_model.net if cond_model else None
    add_while_op(model.net, cond_blob, external_blobs, loop_model.net, other)
