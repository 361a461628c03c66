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

# Loaded at first use: one operator needs no nets, C loads torch, which it asks for GPUs, and the
# engine imports modules of this package.
__getattr__, __dir__ = lazily(
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
        "bridge.caffe2.gradients.gradient_slice": (
            "GetIndexFromGradientList GradGenMeta GradientSlice OpSSA SparseGradGenMeta"
        ),
        "bridge.caffe2.core.device_copies": (
            "InferBlobDevices InferOpBlobDevices InferOpBlobDevicesAsDict "
            "InferOpDeviceAsBlobDevices InjectCrossDeviceCopies InjectDeviceCopiesAmongNets "
            "InjectDeviceCopiesAmongNetsWithoutB2D RemapEntry copy_func_between_devices "
            "update_placeholder_op_output"
        ),
        "bridge.caffe2.core.cloning": (
            "DEFAULT_REMAP_FUNCS control_op_remap recurrent_network_op_remap remap_input "
            "remap_proto"
        ),
        "bridge.caffe2.core.steps": (
            "ExecutionStep add_nets_in_order execution_step scoped_execution_step to_execution_step"
        ),
        "bridge.caffe2.core.net": "Net get_net_name output_to_list",
        "bridge.caffe2.core.net_base": "clone_and_bind_net",
        "bridge.caffe2.core.plan": "Plan",
    },
)
