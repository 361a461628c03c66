# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2.base import global_init as global_init
from bridge.caffe2.base.hardware import GetCUDAVersion as get_cuda_version
from bridge.caffe2.base.hardware import GetCuDNNVersion as get_cudnn_version
from bridge.caffe2.base.hardware import GetDeviceProperties as get_device_properties
from bridge.caffe2.base.hardware import GetNumNUMANodes as get_num_numa_nodes
from bridge.caffe2.base.hardware import IsNUMAEnabled as is_numa_enabled
from bridge.caffe2.base.hardware import NumCudaDevices as num_cuda_devices
from bridge.caffe2.base.hardware import has_cuda_support as has_cuda_support
from bridge.caffe2.base.hardware import has_gpu_support as has_gpu_support
from bridge.caffe2.base.hardware import has_hip_support as has_hip_support
from bridge.caffe2.base.hardware import is_asan as is_asan
from bridge.caffe2.base.names import DummyName as DummyName
from bridge.caffe2.blobs.blob import Blob as Blob
from bridge.caffe2.blobs.blob_tensor import BlobTensor as TensorCPU
from bridge.caffe2.core.memory_sharing import (
    compute_blob_recycling_for_dag as memonger_compute_blob_recycling_for_dag,
)
from bridge.caffe2.core.memory_sharing import (
    optimize_inference_net as memonger_optimize_inference_net,
)
from bridge.caffe2.definitions.engines import SetEnginePref as set_engine_pref
from bridge.caffe2.definitions.engines import SetGlobalEnginePref as set_global_engine_pref
from bridge.caffe2.definitions.engines import SetOpEnginePref as set_op_engine_pref
from bridge.caffe2.definitions.engines import SetPerOpEnginePref as set_per_op_engine_pref
from bridge.caffe2.definitions.op_schema import OpSchema as OpSchema
from bridge.caffe2.definitions.operator_types import RegisteredOperators as registered_operators
from bridge.caffe2.definitions.operator_types import nearby_names as nearby_opnames
from bridge.caffe2.definitions.operator_types import registry_key as op_registry_key
from bridge.caffe2.execution.observers import Observer as Observer
from bridge.caffe2.execution.runnable_net import RunnableNet as Net
from bridge.caffe2.files.databases import registered_dbs as registered_dbs
from bridge.caffe2.files.handles import DB as DB
from bridge.caffe2.files.handles import Cursor as Cursor
from bridge.caffe2.files.handles import Mode as Mode
from bridge.caffe2.files.handles import Transaction as Transaction
from bridge.caffe2.files.handles import create_db as create_db
from bridge.caffe2.legacy.onnx_export import export_to_onnx as export_to_onnx
from bridge.caffe2.legacy.onnx_export import support_onnx_export as support_onnx_export
from bridge.caffe2.legacy.onnx_import import Caffe2Backend as Caffe2Backend
from bridge.caffe2.workspaces.benchmark import BenchmarkNet as benchmark_net
from bridge.caffe2.workspaces.benchmark import BenchmarkNetOnce as benchmark_net_once
from bridge.caffe2.workspaces.benchmark import ClearGlobalNetObserver as clear_global_net_observer
from bridge.caffe2.workspaces.benchmark import GetStats as get_stats
from bridge.caffe2.workspaces.blob_functions import Blobs as blobs
from bridge.caffe2.workspaces.blob_functions import CreateBlob as create_blob
from bridge.caffe2.workspaces.blob_functions import DeserializeBlob as deserialize_blob
from bridge.caffe2.workspaces.blob_functions import GetBlobNUMANode as get_blob_numa_node
from bridge.caffe2.workspaces.blob_functions import GetBlobSizeBytes as get_blob_size_bytes
from bridge.caffe2.workspaces.blob_functions import HasBlob as has_blob
from bridge.caffe2.workspaces.blob_functions import ResetBlob as reset_blob
from bridge.caffe2.workspaces.blob_functions import SerializeBlob as serialize_blob
from bridge.caffe2.workspaces.c_functions import Workspace as Workspace
from bridge.caffe2.workspaces.c_functions import add_observer_to_net as add_observer_to_net
from bridge.caffe2.workspaces.c_functions import apply_transform as apply_transform
from bridge.caffe2.workspaces.c_functions import (
    apply_transform_if_faster as apply_transform_if_faster,
)
from bridge.caffe2.workspaces.c_functions import (
    builtin_cpu_supports_avx2 as builtin_cpu_supports_avx2,
)
from bridge.caffe2.workspaces.c_functions import create_child_workspace as create_child_workspace
from bridge.caffe2.workspaces.c_functions import create_net as create_net
from bridge.caffe2.workspaces.c_functions import (
    define_caffe2_no_operator_schema as define_caffe2_no_operator_schema,
)
from bridge.caffe2.workspaces.c_functions import delete_net as delete_net
from bridge.caffe2.workspaces.c_functions import fetch_blob as fetch_blob
from bridge.caffe2.workspaces.c_functions import get_build_options as get_build_options
from bridge.caffe2.workspaces.c_functions import has_mkldnn as has_mkldnn
from bridge.caffe2.workspaces.c_functions import local_blobs as local_blobs
from bridge.caffe2.workspaces.c_functions import num_observers_on_net as num_observers_on_net
from bridge.caffe2.workspaces.c_functions import (
    remove_observer_from_net as remove_observer_from_net,
)
from bridge.caffe2.workspaces.c_functions import transform_fuseConvBN as transform_fuseConvBN
from bridge.caffe2.workspaces.c_functions import (
    transform_fuseNNPACKConvRelu as transform_fuseNNPACKConvRelu,
)
from bridge.caffe2.workspaces.c_functions import (
    transform_optimizeForMKLDNN as transform_optimizeForMKLDNN,
)
from bridge.caffe2.workspaces.c_functions import use_mkldnn as use_mkldnn
from bridge.caffe2.workspaces.c_functions import use_rocm as use_rocm
from bridge.caffe2.workspaces.c_functions import use_trt as use_trt
from bridge.caffe2.workspaces.c_functions import (
    workspace_transform_exists as workspace_transform_exists,
)
from bridge.caffe2.workspaces.feed_fetch import FeedBlob as feed_blob
from bridge.caffe2.workspaces.named_nets import Nets as nets
from bridge.caffe2.workspaces.named_nets import RunNet as run_net
from bridge.caffe2.workspaces.named_nets import RunNetOnce as run_net_once
from bridge.caffe2.workspaces.operator_cost import GetOperatorCost as get_operator_cost
from bridge.caffe2.workspaces.plan_runs import BackgroundPlan as BackgroundPlan
from bridge.caffe2.workspaces.plan_runs import RunPlan as run_plan
from bridge.caffe2.workspaces.plan_runs import RunPlanInBackground as run_plan_in_background
from bridge.caffe2.workspaces.predictor import Predictor as Predictor
from bridge.caffe2.workspaces.run_once import RunOperatorMultiple as run_operator_multiple
from bridge.caffe2.workspaces.run_once import RunOperatorOnce as run_operator_once
from bridge.caffe2.workspaces.transforms import transform_bytes as run_transform
from bridge.caffe2.workspaces.transforms import transform_bytes as run_workspace_transform
from bridge.caffe2.workspaces.transforms import transform_exists as transform_exists
from bridge.caffe2.workspaces.workspace import CurrentWorkspace as current_workspace
from bridge.caffe2.workspaces.workspace import ResetWorkspace as reset_workspace
from bridge.caffe2.workspaces.workspace import RootFolder as root_folder
from bridge.caffe2.workspaces.workspace import SwitchWorkspace as switch_workspace
from bridge.caffe2.workspaces.workspace import Workspaces as workspaces

__all__ = [
    "BackgroundPlan",
    "Blob",
    "Caffe2Backend",
    "Cursor",
    "DB",
    "DummyName",
    "Mode",
    "Net",
    "Observer",
    "OpSchema",
    "Predictor",
    "TensorCPU",
    "Transaction",
    "Workspace",
    "add_observer_to_net",
    "apply_transform",
    "apply_transform_if_faster",
    "benchmark_net",
    "benchmark_net_once",
    "blobs",
    "builtin_cpu_supports_avx2",
    "clear_global_net_observer",
    "create_blob",
    "create_child_workspace",
    "create_db",
    "create_net",
    "current_workspace",
    "define_caffe2_no_operator_schema",
    "delete_net",
    "deserialize_blob",
    "export_to_onnx",
    "feed_blob",
    "fetch_blob",
    "get_blob_numa_node",
    "get_blob_size_bytes",
    "get_build_options",
    "get_cuda_version",
    "get_cudnn_version",
    "get_device_properties",
    "get_num_numa_nodes",
    "get_operator_cost",
    "get_stats",
    "global_init",
    "has_blob",
    "has_cuda_support",
    "has_gpu_support",
    "has_hip_support",
    "has_mkldnn",
    "is_asan",
    "is_numa_enabled",
    "local_blobs",
    "memonger_compute_blob_recycling_for_dag",
    "memonger_optimize_inference_net",
    "nearby_opnames",
    "nets",
    "num_cuda_devices",
    "num_observers_on_net",
    "op_registry_key",
    "registered_dbs",
    "registered_operators",
    "remove_observer_from_net",
    "reset_blob",
    "reset_workspace",
    "root_folder",
    "run_net",
    "run_net_once",
    "run_operator_multiple",
    "run_operator_once",
    "run_plan",
    "run_plan_in_background",
    "run_transform",
    "run_workspace_transform",
    "serialize_blob",
    "set_engine_pref",
    "set_global_engine_pref",
    "set_op_engine_pref",
    "set_per_op_engine_pref",
    "support_onnx_export",
    "switch_workspace",
    "transform_exists",
    "transform_fuseConvBN",
    "transform_fuseNNPACKConvRelu",
    "transform_optimizeForMKLDNN",
    "use_mkldnn",
    "use_rocm",
    "use_trt",
    "workspace_transform_exists",
    "workspaces",
]
