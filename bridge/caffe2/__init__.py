# SPDX-License-Identifier: Apache-2.0
"""The Caffe2-style API: caffe2.Tensor, a memory manager, and a workspace of named blobs."""

from __future__ import annotations

from bridge.c10.immortal import immortal as _immortal
from bridge.c10.resize_flags import FLAGS
from bridge.caffe2.blobs.blob import Blob
from bridge.caffe2.definitions.operator_types import built_in as _built_in
from bridge.caffe2.install import install
from bridge.caffe2.tensor.tensor import Tensor
from bridge.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import core, workspace

    # X as X: modules of a package, found here by bridge.caffe2.install.
    from bridge.caffe2.core import control_ops_util as control_ops_util
    from bridge.caffe2.definitions import dyndep as dyndep
    from bridge.caffe2.definitions import lazy_dyndep as lazy_dyndep
    from bridge.caffe2.definitions import scope as scope
    from bridge.caffe2.execution.function_operator import operator
    from bridge.caffe2.execution.operator import Operator
    from bridge.caffe2.execution.registry import register_operator
    from bridge.caffe2.modeling import context as context
    from bridge.caffe2.modeling import initializers as initializers
    from bridge.caffe2.modeling import model_helper as model_helper
    from bridge.caffe2.modeling import modifier_context as modifier_context
    from bridge.caffe2.modeling import net_modifier as net_modifier
    from bridge.caffe2.modeling import parameter_info as parameter_info
    from bridge.caffe2.modeling import parameter_sharing as parameter_sharing
    from bridge.caffe2.modules.net_module import to_module
    from bridge.caffe2.optimizer import gradient_clipping as gradient_clipping
    from bridge.caffe2.predictor import mobile_exporter as mobile_exporter
    from bridge.caffe2.predictor import predictor_exporter as predictor_exporter
    from bridge.caffe2.predictor import predictor_py_utils as predictor_py_utils
    from bridge.caffe2.task import session as session
    from bridge.caffe2.tensor.factories import (
        ReinitializeAndCopyFrom,
        ReinitializeTensor,
        TensorCPUFromValues,
        empty,
    )
    from bridge.caffe2.workspaces.checkpoint import load_checkpoint, save_checkpoint

    normalizer_context = modifier_context
    optimizer_context = modifier_context
    predictor_constants = serde = predictor_py_utils
    regularizer_context = modifier_context

__all__ = [
    "FLAGS",
    "Blob",
    "Operator",
    "ReinitializeAndCopyFrom",
    "ReinitializeTensor",
    "Tensor",
    "TensorCPUFromValues",
    "core",
    "empty",
    "install",
    "load_checkpoint",
    "operator",
    "register_operator",
    "save_checkpoint",
    "to_module",
    "workspace",
]

_built_in.package = "bridge.caffe2.operators"

# Loaded at first use: programs with tensors only do not need these.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.core": "core",
        "bridge.caffe2.execution.function_operator": "operator",
        "bridge.caffe2.execution.operator": "Operator",
        "bridge.caffe2.execution.registry": "register_operator",
        "bridge.caffe2.modules.net_module": "to_module",
        "bridge.caffe2.tensor.factories": (
            "ReinitializeAndCopyFrom ReinitializeTensor TensorCPUFromValues empty"
        ),
        "bridge.caffe2.workspace": "workspace",
        "bridge.caffe2.workspaces.checkpoint": "load_checkpoint save_checkpoint",
    },
)
if not TYPE_CHECKING:  # type checkers would take any name for one of these
    __getattr__ = _get

_immortal(globals())
