# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python._import_c_extension``, the module ``workspace.C``.

Those that scripts use; most are the functions of `workspace` and `core` under other names. Follows
caffe2/python/pybind_state.cc, PyTorch 1.8.1.

>>> from bridge.caffe2 import workspace
>>> workspace.C.create_blob("x"), workspace.C.has_blob("x"), workspace.C.local_blobs()
(True, True, ['x'])
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.base.global_init": "global_init=GlobalInit",
        "bridge.caffe2.base.hardware": (
            "get_cuda_version=GetCUDAVersion get_cudnn_version=GetCuDNNVersion "
            "get_device_properties=GetDeviceProperties get_num_numa_nodes=GetNumNUMANodes "
            "has_cuda_support has_gpu_support has_hip_support is_asan "
            "is_numa_enabled=IsNUMAEnabled num_cuda_devices=NumCudaDevices"
        ),
        "bridge.caffe2.base.names": "DummyName",
        "bridge.caffe2.blobs.blob": "Blob",
        "bridge.caffe2.blobs.blob_tensor": "TensorCPU=BlobTensor",
        "bridge.caffe2.core.memory_sharing": (
            "memonger_compute_blob_recycling_for_dag=compute_blob_recycling_for_dag "
            "memonger_optimize_inference_net=optimize_inference_net"
        ),
        "bridge.caffe2.definitions.engines": (
            "set_engine_pref=SetEnginePref set_global_engine_pref=SetGlobalEnginePref "
            "set_op_engine_pref=SetOpEnginePref set_per_op_engine_pref=SetPerOpEnginePref"
        ),
        "bridge.caffe2.definitions.op_schema": "OpSchema",
        "bridge.caffe2.definitions.operator_types": (
            "nearby_opnames=nearby_names op_registry_key=registry_key "
            "registered_operators=RegisteredOperators"
        ),
        "bridge.caffe2.execution.observers": "Observer",
        "bridge.caffe2.execution.runnable_net": "Net=RunnableNet",
        "bridge.caffe2.files.handles": "Cursor DB Mode Transaction create_db",
        "bridge.caffe2.files.databases": "registered_dbs",
        "bridge.caffe2.legacy.onnx_export": "export_to_onnx support_onnx_export",
        "bridge.caffe2.legacy.onnx_import": "Caffe2Backend",
        "bridge.caffe2.workspaces.plan_runs": (
            "BackgroundPlan run_plan=RunPlan run_plan_in_background=RunPlanInBackground"
        ),
        "bridge.caffe2.workspaces.benchmark": (
            "benchmark_net=BenchmarkNet benchmark_net_once=BenchmarkNetOnce "
            "clear_global_net_observer=ClearGlobalNetObserver get_stats=GetStats"
        ),
        "bridge.caffe2.workspaces.blob_functions": (
            "blobs=Blobs create_blob=CreateBlob deserialize_blob=DeserializeBlob "
            "get_blob_numa_node=GetBlobNUMANode get_blob_size_bytes=GetBlobSizeBytes "
            "has_blob=HasBlob reset_blob=ResetBlob serialize_blob=SerializeBlob"
        ),
        "bridge.caffe2.workspaces.c_functions": (
            "Workspace add_observer_to_net apply_transform apply_transform_if_faster "
            "builtin_cpu_supports_avx2 create_child_workspace create_net "
            "define_caffe2_no_operator_schema delete_net fetch_blob get_build_options has_mkldnn "
            "local_blobs num_observers_on_net remove_observer_from_net transform_fuseConvBN "
            "transform_fuseNNPACKConvRelu transform_optimizeForMKLDNN use_mkldnn use_rocm use_trt "
            "workspace_transform_exists"
        ),
        "bridge.caffe2.workspaces.feed_fetch": "feed_blob=FeedBlob",
        "bridge.caffe2.workspaces.named_nets": "nets=Nets run_net=RunNet run_net_once=RunNetOnce",
        "bridge.caffe2.workspaces.operator_cost": "get_operator_cost=GetOperatorCost",
        "bridge.caffe2.workspaces.run_once": (
            "run_operator_multiple=RunOperatorMultiple run_operator_once=RunOperatorOnce"
        ),
        "bridge.caffe2.workspaces.predictor": "Predictor",
        "bridge.caffe2.workspaces.workspace": (
            "current_workspace=CurrentWorkspace reset_workspace=ResetWorkspace "
            "root_folder=RootFolder switch_workspace=SwitchWorkspace workspaces=Workspaces"
        ),
        "bridge.caffe2.workspaces.transforms": (
            "run_transform=transform_bytes run_workspace_transform=transform_bytes transform_exists"
        ),
    },
)
