# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2 import c_extension as C
from bridge.caffe2 import utils as utils
from bridge.caffe2 import workspace as workspace
from bridge.caffe2.base.data_types import DataType as DataType
from bridge.caffe2.base.device_option import IsGPUDeviceType as IsGPUDeviceType
from bridge.caffe2.base.device_option import device_equal as device_equal
from bridge.caffe2.base.device_option import device_option_equal as device_option_equal
from bridge.caffe2.base.global_init import GetGlobalInitArgs as GetGlobalInitArgs
from bridge.caffe2.base.global_init import GlobalInit as GlobalInit
from bridge.caffe2.core.cloning import DEFAULT_REMAP_FUNCS as DEFAULT_REMAP_FUNCS
from bridge.caffe2.core.cloning import control_op_remap as control_op_remap
from bridge.caffe2.core.cloning import recurrent_network_op_remap as recurrent_network_op_remap
from bridge.caffe2.core.cloning import remap_input as remap_input
from bridge.caffe2.core.cloning import remap_proto as remap_proto
from bridge.caffe2.core.device_copies import InferBlobDevices as InferBlobDevices
from bridge.caffe2.core.device_copies import InferOpBlobDevices as InferOpBlobDevices
from bridge.caffe2.core.device_copies import InferOpBlobDevicesAsDict as InferOpBlobDevicesAsDict
from bridge.caffe2.core.device_copies import (
    InferOpDeviceAsBlobDevices as InferOpDeviceAsBlobDevices,
)
from bridge.caffe2.core.device_copies import InjectCrossDeviceCopies as InjectCrossDeviceCopies
from bridge.caffe2.core.device_copies import (
    InjectDeviceCopiesAmongNets as InjectDeviceCopiesAmongNets,
)
from bridge.caffe2.core.device_copies import (
    InjectDeviceCopiesAmongNetsWithoutB2D as InjectDeviceCopiesAmongNetsWithoutB2D,
)
from bridge.caffe2.core.device_copies import RemapEntry as RemapEntry
from bridge.caffe2.core.device_copies import copy_func_between_devices as copy_func_between_devices
from bridge.caffe2.core.device_copies import (
    update_placeholder_op_output as update_placeholder_op_output,
)
from bridge.caffe2.core.net import Net as Net
from bridge.caffe2.core.net import get_net_name as get_net_name
from bridge.caffe2.core.net import output_to_list as output_to_list
from bridge.caffe2.core.net_base import clone_and_bind_net as clone_and_bind_net
from bridge.caffe2.core.plan import Plan as Plan
from bridge.caffe2.core.steps import ExecutionStep as ExecutionStep
from bridge.caffe2.core.steps import add_nets_in_order as add_nets_in_order
from bridge.caffe2.core.steps import execution_step as execution_step
from bridge.caffe2.core.steps import scoped_execution_step as scoped_execution_step
from bridge.caffe2.core.steps import to_execution_step as to_execution_step
from bridge.caffe2.definitions import scope as scope
from bridge.caffe2.definitions.blob_reference import BlobReference as BlobReference
from bridge.caffe2.definitions.blob_reference import ScopedBlobReference as ScopedBlobReference
from bridge.caffe2.definitions.blob_reference import ScopedName as ScopedName
from bridge.caffe2.definitions.create_operator import CreateOperator as CreateOperator
from bridge.caffe2.definitions.create_operator import DeviceOption as DeviceOption
from bridge.caffe2.definitions.engines import SetEnginePref as SetEnginePref
from bridge.caffe2.definitions.engines import SetGlobalEnginePref as SetGlobalEnginePref
from bridge.caffe2.definitions.engines import SetOpEnginePref as SetOpEnginePref
from bridge.caffe2.definitions.engines import SetPerOpEnginePref as SetPerOpEnginePref
from bridge.caffe2.definitions.operator_types import IsOperator as IsOperator
from bridge.caffe2.definitions.operator_types import IsOperatorWithEngine as IsOperatorWithEngine
from bridge.caffe2.definitions.operator_types import (
    RefreshRegisteredOperators as RefreshRegisteredOperators,
)
from bridge.caffe2.definitions.python_functions import CreatePythonOperator as CreatePythonOperator
from bridge.caffe2.definitions.scope import DeviceScope as DeviceScope
from bridge.caffe2.definitions.scope import NameScope as NameScope
from bridge.caffe2.definitions.ssa import get_op_ids_in_path as get_op_ids_in_path
from bridge.caffe2.definitions.ssa import get_output_producers as get_output_producers
from bridge.caffe2.definitions.ssa import get_ssa as get_ssa
from bridge.caffe2.definitions.ssa import get_undefined_blobs as get_undefined_blobs
from bridge.caffe2.gradients.backward_pass import IR as IR
from bridge.caffe2.gradients.backward_pass import GradientRegistry as GradientRegistry
from bridge.caffe2.gradients.gradient_slice import (
    GetIndexFromGradientList as GetIndexFromGradientList,
)
from bridge.caffe2.gradients.gradient_slice import GradGenMeta as GradGenMeta
from bridge.caffe2.gradients.gradient_slice import GradientSlice as GradientSlice
from bridge.caffe2.gradients.gradient_slice import OpSSA as OpSSA
from bridge.caffe2.gradients.gradient_slice import SparseGradGenMeta as SparseGradGenMeta
from bridge.caffe2.proto import caffe2_pb2 as caffe2_pb2

__all__ = [
    "BlobReference",
    "C",
    "CreateOperator",
    "CreatePythonOperator",
    "DEFAULT_REMAP_FUNCS",
    "DataType",
    "DeviceOption",
    "DeviceScope",
    "ExecutionStep",
    "GetGlobalInitArgs",
    "GetIndexFromGradientList",
    "GlobalInit",
    "GradGenMeta",
    "GradientRegistry",
    "GradientSlice",
    "IR",
    "InferBlobDevices",
    "InferOpBlobDevices",
    "InferOpBlobDevicesAsDict",
    "InferOpDeviceAsBlobDevices",
    "InjectCrossDeviceCopies",
    "InjectDeviceCopiesAmongNets",
    "InjectDeviceCopiesAmongNetsWithoutB2D",
    "IsGPUDeviceType",
    "IsOperator",
    "IsOperatorWithEngine",
    "NameScope",
    "Net",
    "OpSSA",
    "Plan",
    "RefreshRegisteredOperators",
    "RemapEntry",
    "ScopedBlobReference",
    "ScopedName",
    "SetEnginePref",
    "SetGlobalEnginePref",
    "SetOpEnginePref",
    "SetPerOpEnginePref",
    "SparseGradGenMeta",
    "add_nets_in_order",
    "caffe2_pb2",
    "clone_and_bind_net",
    "control_op_remap",
    "copy_func_between_devices",
    "device_equal",
    "device_option_equal",
    "execution_step",
    "get_net_name",
    "get_op_ids_in_path",
    "get_output_producers",
    "get_ssa",
    "get_undefined_blobs",
    "output_to_list",
    "recurrent_network_op_remap",
    "remap_input",
    "remap_proto",
    "scope",
    "scoped_execution_step",
    "to_execution_step",
    "update_placeholder_op_output",
    "utils",
    "workspace",
]
