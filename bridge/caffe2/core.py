# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.core``: what operators, nets and plans are made with."""

from __future__ import annotations

from bridge.caffe2.blob_reference import BlobReference, ScopedBlobReference, ScopedName
from bridge.caffe2.create_operator import CreateOperator, DeviceOption
from bridge.caffe2.data_type import DataType
from bridge.caffe2.devices import (
    InferBlobDevices,
    IsGPUDeviceType,
    device_equal,
    device_option_equal,
)
from bridge.caffe2.execution_step import (
    ExecutionStep,
    add_nets_in_order,
    execution_step,
    scoped_execution_step,
    to_execution_step,
)
from bridge.caffe2.global_init import GetGlobalInitArgs, GlobalInit
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.lazy import lazily
from bridge.caffe2.net import Net, get_net_name, output_to_list
from bridge.caffe2.net_rewriting import remap_input
from bridge.caffe2.plan import Plan
from bridge.caffe2.python_operator import CreatePythonOperator
from bridge.caffe2.registry import IsOperator, IsOperatorWithEngine, RefreshRegisteredOperators
from bridge.caffe2.scope import DeviceScope, NameScope
from bridge.caffe2.ssa import (
    get_op_ids_in_path,
    get_output_producers,
    get_ssa,
    get_undefined_blobs,
)

TYPE_CHECKING = False  # typing takes longer to import than all that needs it
if TYPE_CHECKING:
    from bridge.caffe2.gradients.backward_pass import IR
    from bridge.caffe2.gradients.registry import GradientRegistry

__all__ = [
    "IR",
    "BlobReference",
    "CreateOperator",
    "CreatePythonOperator",
    "DataType",
    "DeviceOption",
    "DeviceScope",
    "ExecutionStep",
    "GetGlobalInitArgs",
    "GlobalInit",
    "GradientRegistry",
    "GradientSlice",
    "InferBlobDevices",
    "IsGPUDeviceType",
    "IsOperator",
    "IsOperatorWithEngine",
    "NameScope",
    "Net",
    "Plan",
    "RefreshRegisteredOperators",
    "ScopedBlobReference",
    "ScopedName",
    "add_nets_in_order",
    "device_equal",
    "device_option_equal",
    "execution_step",
    "get_net_name",
    "get_op_ids_in_path",
    "get_output_producers",
    "get_ssa",
    "get_undefined_blobs",
    "output_to_list",
    "remap_input",
    "scoped_execution_step",
    "to_execution_step",
]

# Not needed by who runs nets only.
__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.gradients.backward_pass": "IR",
        "bridge.caffe2.gradients.registry": "GradientRegistry",
    },
)
