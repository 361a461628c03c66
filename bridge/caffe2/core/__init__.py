# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.core``: operators, nets, plans and gradients as messages.

>>> from bridge.caffe2 import core
>>> net = core.Net("core_doc")
>>> y = net.Relu("x", "y")
>>> gradients = net.AddGradientOperators([y])
>>> [op.type for op in net.Proto().op], gradients["x"]
(['Relu', 'ConstantFill', 'ReluGradient'], BlobReference("x_grad"))
"""

from __future__ import annotations

from bridge.lazy import lazily

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2 import c_extension as C
    from bridge.caffe2 import utils, workspace
    from bridge.caffe2.base.data_types import DataType
    from bridge.caffe2.base.device_option import IsGPUDeviceType, device_equal, device_option_equal
    from bridge.caffe2.base.global_init import GetGlobalInitArgs, GlobalInit
    from bridge.caffe2.core.blob_devices import (
        InferBlobDevices,
        InferOpBlobDevices,
        InferOpBlobDevicesAsDict,
        InferOpDeviceAsBlobDevices,
    )
    from bridge.caffe2.core.cloning import (
        DEFAULT_REMAP_FUNCS,
        control_op_remap,
        recurrent_network_op_remap,
        remap_input,
        remap_proto,
    )
    from bridge.caffe2.core.device_copies import (
        InjectCrossDeviceCopies,
        InjectDeviceCopiesAmongNets,
        InjectDeviceCopiesAmongNetsWithoutB2D,
        RemapEntry,
        copy_func_between_devices,
        update_placeholder_op_output,
    )
    from bridge.caffe2.core.net import Net, get_net_name, output_to_list
    from bridge.caffe2.core.net_rewriting import clone_and_bind_net
    from bridge.caffe2.core.plan import Plan
    from bridge.caffe2.core.steps import (
        ExecutionStep,
        add_nets_in_order,
        execution_step,
        scoped_execution_step,
        to_execution_step,
    )
    from bridge.caffe2.definitions import scope
    from bridge.caffe2.definitions.blob_reference import (
        BlobReference,
        ScopedBlobReference,
        ScopedName,
    )
    from bridge.caffe2.definitions.create_operator import CreateOperator, DeviceOption
    from bridge.caffe2.definitions.engines import (
        SetEnginePref,
        SetGlobalEnginePref,
        SetOpEnginePref,
        SetPerOpEnginePref,
    )
    from bridge.caffe2.definitions.operator_types import (
        IsOperator,
        IsOperatorWithEngine,
        RefreshRegisteredOperators,
    )
    from bridge.caffe2.definitions.python_functions import CreatePythonOperator
    from bridge.caffe2.definitions.scope import DeviceScope, NameScope
    from bridge.caffe2.definitions.ssa import (
        get_op_ids_in_path,
        get_output_producers,
        get_ssa,
        get_undefined_blobs,
    )
    from bridge.caffe2.gradients.backward_pass import IR, GradientRegistry
    from bridge.caffe2.gradients.gradient_slice import GradientSlice
    from bridge.caffe2.gradients.version_records import (
        GetIndexFromGradientList,
        GradGenMeta,
        OpSSA,
        SparseGradGenMeta,
    )
    from bridge.caffe2.proto import caffe2_pb2

__all__ = [
    "IR",
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

# Loaded at first use: one operator needs no nets, C loads torch, which it asks for GPUs, and the
# engine imports modules of this package.
_get, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.c_extension": "C",
        "bridge.caffe2.base.data_types": "DataType",
        "bridge.caffe2.base.device_option": "IsGPUDeviceType device_equal device_option_equal",
        "bridge.caffe2.base.global_init": "GetGlobalInitArgs GlobalInit",
        "bridge.caffe2.workspace": "workspace",
        "bridge.caffe2.utils": "utils",
        "bridge.caffe2.proto.caffe2_pb2": "caffe2_pb2",
        "bridge.caffe2.definitions.blob_reference": (
            "BlobReference ScopedBlobReference ScopedName"
        ),
        "bridge.caffe2.definitions.create_operator": "CreateOperator DeviceOption",
        "bridge.caffe2.definitions.operator_types": (
            "IsOperator IsOperatorWithEngine RefreshRegisteredOperators "
            "_GetRegisteredOperators _REGISTERED_OPERATORS"
        ),
        "bridge.caffe2.definitions.python_functions": "CreatePythonOperator",
        "bridge.caffe2.definitions.scope": "DeviceScope NameScope scope",
        "bridge.caffe2.definitions.ssa": (
            "get_op_ids_in_path get_output_producers get_ssa get_undefined_blobs"
        ),
        "bridge.caffe2.definitions.engines": (
            "SetEnginePref SetGlobalEnginePref SetOpEnginePref SetPerOpEnginePref"
        ),
        "bridge.caffe2.gradients.backward_pass": "IR GradientRegistry",
        "bridge.caffe2.gradients.gradient_slice": "GradientSlice",
        "bridge.caffe2.gradients.version_records": (
            "GetIndexFromGradientList GradGenMeta OpSSA SparseGradGenMeta"
        ),
        "bridge.caffe2.core.blob_devices": (
            "InferBlobDevices InferOpBlobDevices InferOpBlobDevicesAsDict "
            "InferOpDeviceAsBlobDevices"
        ),
        "bridge.caffe2.core.cloning": (
            "DEFAULT_REMAP_FUNCS control_op_remap recurrent_network_op_remap remap_input "
            "remap_proto"
        ),
        "bridge.caffe2.core.device_copies": (
            "InjectCrossDeviceCopies InjectDeviceCopiesAmongNets "
            "InjectDeviceCopiesAmongNetsWithoutB2D RemapEntry copy_func_between_devices "
            "update_placeholder_op_output"
        ),
        "bridge.caffe2.core.steps": (
            "ExecutionStep add_nets_in_order execution_step scoped_execution_step to_execution_step"
        ),
        "bridge.caffe2.core.net": "Net get_net_name output_to_list",
        "bridge.caffe2.core.net_rewriting": "clone_and_bind_net",
        "bridge.caffe2.core.plan": "Plan",
    },
)

if not TYPE_CHECKING:  # type checkers would take any name for one of these
    __getattr__ = _get
