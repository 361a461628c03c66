# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2 import c_extension as C
from bridge.caffe2 import utils as utils
from bridge.caffe2.base.global_init import GlobalInit as GlobalInit
from bridge.caffe2.base.hardware import GetCUDAVersion as GetCUDAVersion
from bridge.caffe2.base.hardware import GetCuDNNVersion as GetCuDNNVersion
from bridge.caffe2.base.hardware import GetDeviceProperties as GetDeviceProperties
from bridge.caffe2.base.hardware import GetGPUMemoryInfo as GetGPUMemoryInfo
from bridge.caffe2.base.hardware import GetGpuPeerAccessPattern as GetGpuPeerAccessPattern
from bridge.caffe2.base.hardware import GetNumNUMANodes as GetNumNUMANodes
from bridge.caffe2.base.hardware import GpuDeviceType as GpuDeviceType
from bridge.caffe2.base.hardware import IsNUMAEnabled as IsNUMAEnabled
from bridge.caffe2.base.hardware import NumCudaDevices as NumCudaDevices
from bridge.caffe2.base.hardware import NumGpuDevices as NumGpuDevices
from bridge.caffe2.base.hardware import has_cuda_support as has_cuda_support
from bridge.caffe2.base.hardware import has_gpu_support as has_gpu_support
from bridge.caffe2.base.hardware import has_hip_support as has_hip_support
from bridge.caffe2.base.hardware import is_asan as is_asan
from bridge.caffe2.blobs.blob import Blob as Blob
from bridge.caffe2.blobs.int8 import Int8Tensor as Int8Tensor
from bridge.caffe2.blobs.int8 import Int8TensorCPU as Int8TensorCPU
from bridge.caffe2.definitions import scope as scope
from bridge.caffe2.definitions.operator_types import RegisteredOperators as RegisteredOperators
from bridge.caffe2.definitions.tracebacks import (
    CallWithExceptionIntercept as CallWithExceptionIntercept,
)
from bridge.caffe2.definitions.tracebacks import operator_tracebacks as operator_tracebacks
from bridge.caffe2.proto import caffe2_pb2 as caffe2_pb2
from bridge.caffe2.workspaces.benchmark import BenchmarkNet as BenchmarkNet
from bridge.caffe2.workspaces.benchmark import BenchmarkNetOnce as BenchmarkNetOnce
from bridge.caffe2.workspaces.benchmark import ClearGlobalNetObserver as ClearGlobalNetObserver
from bridge.caffe2.workspaces.benchmark import FillRandomNetworkInputs as FillRandomNetworkInputs
from bridge.caffe2.workspaces.benchmark import GetStats as GetStats
from bridge.caffe2.workspaces.blob_functions import Blobs as Blobs
from bridge.caffe2.workspaces.blob_functions import CreateBlob as CreateBlob
from bridge.caffe2.workspaces.blob_functions import DeserializeBlob as DeserializeBlob
from bridge.caffe2.workspaces.blob_functions import FetchBlobs as FetchBlobs
from bridge.caffe2.workspaces.blob_functions import FetchInt8Blob as FetchInt8Blob
from bridge.caffe2.workspaces.blob_functions import FetchInt8BlobRealVal as FetchInt8BlobRealVal
from bridge.caffe2.workspaces.blob_functions import GetBlobNUMANode as GetBlobNUMANode
from bridge.caffe2.workspaces.blob_functions import GetBlobSizeBytes as GetBlobSizeBytes
from bridge.caffe2.workspaces.blob_functions import HasBlob as HasBlob
from bridge.caffe2.workspaces.blob_functions import ResetBlob as ResetBlob
from bridge.caffe2.workspaces.blob_functions import SerializeBlob as SerializeBlob
from bridge.caffe2.workspaces.blob_functions import blobs as blobs
from bridge.caffe2.workspaces.feed_fetch import FeedBlob as FeedBlob
from bridge.caffe2.workspaces.feed_fetch import FetchBlob as FetchBlob
from bridge.caffe2.workspaces.feed_fetch import FetchTorch as FetchTorch
from bridge.caffe2.workspaces.immediate import FeedImmediate as FeedImmediate
from bridge.caffe2.workspaces.immediate import FetchImmediate as FetchImmediate
from bridge.caffe2.workspaces.immediate import ImmediateBlobs as ImmediateBlobs
from bridge.caffe2.workspaces.immediate import IsImmediate as IsImmediate
from bridge.caffe2.workspaces.immediate import RunOperatorImmediate as RunOperatorImmediate
from bridge.caffe2.workspaces.immediate import StartImmediate as StartImmediate
from bridge.caffe2.workspaces.immediate import StopImmediate as StopImmediate
from bridge.caffe2.workspaces.name_text import GetNameScope as GetNameScope
from bridge.caffe2.workspaces.name_text import GetNetName as GetNetName
from bridge.caffe2.workspaces.name_text import StringifyBlobName as StringifyBlobName
from bridge.caffe2.workspaces.name_text import StringifyNetName as StringifyNetName
from bridge.caffe2.workspaces.name_text import StringifyProto as StringifyProto
from bridge.caffe2.workspaces.named_nets import CreateNet as CreateNet
from bridge.caffe2.workspaces.named_nets import DeleteNet as DeleteNet
from bridge.caffe2.workspaces.named_nets import Nets as Nets
from bridge.caffe2.workspaces.named_nets import RunNet as RunNet
from bridge.caffe2.workspaces.named_nets import RunNetOnce as RunNetOnce
from bridge.caffe2.workspaces.operator_cost import GetOperatorCost as GetOperatorCost
from bridge.caffe2.workspaces.plan_runs import RunPlan as RunPlan
from bridge.caffe2.workspaces.plan_runs import RunPlanInBackground as RunPlanInBackground
from bridge.caffe2.workspaces.predictor import Predictor as Predictor
from bridge.caffe2.workspaces.run_once import RunOperatorMultiple as RunOperatorMultiple
from bridge.caffe2.workspaces.run_once import RunOperatorOnce as RunOperatorOnce
from bridge.caffe2.workspaces.run_once import RunOperatorsOnce as RunOperatorsOnce
from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes as InferShapesAndTypes
from bridge.caffe2.workspaces.transforms import ApplyTransform as ApplyTransform
from bridge.caffe2.workspaces.transforms import ApplyTransformIfFaster as ApplyTransformIfFaster
from bridge.caffe2.workspaces.workspace import CurrentWorkspace as CurrentWorkspace
from bridge.caffe2.workspaces.workspace import ResetWorkspace as ResetWorkspace
from bridge.caffe2.workspaces.workspace import RootFolder as RootFolder
from bridge.caffe2.workspaces.workspace import SwitchWorkspace as SwitchWorkspace
from bridge.caffe2.workspaces.workspace import Workspace as Workspace
from bridge.caffe2.workspaces.workspace import WorkspaceGuard as WorkspaceGuard
from bridge.caffe2.workspaces.workspace import Workspaces as Workspaces

__all__ = [
    "ApplyTransform",
    "ApplyTransformIfFaster",
    "BenchmarkNet",
    "BenchmarkNetOnce",
    "Blob",
    "Blobs",
    "C",
    "CallWithExceptionIntercept",
    "ClearGlobalNetObserver",
    "CreateBlob",
    "CreateNet",
    "CurrentWorkspace",
    "DeleteNet",
    "DeserializeBlob",
    "FeedBlob",
    "FeedImmediate",
    "FetchBlob",
    "FetchBlobs",
    "FetchImmediate",
    "FetchInt8Blob",
    "FetchInt8BlobRealVal",
    "FetchTorch",
    "FillRandomNetworkInputs",
    "GetBlobNUMANode",
    "GetBlobSizeBytes",
    "GetCUDAVersion",
    "GetCuDNNVersion",
    "GetDeviceProperties",
    "GetGPUMemoryInfo",
    "GetGpuPeerAccessPattern",
    "GetNameScope",
    "GetNetName",
    "GetNumNUMANodes",
    "GetOperatorCost",
    "GetStats",
    "GlobalInit",
    "GpuDeviceType",
    "HasBlob",
    "ImmediateBlobs",
    "InferShapesAndTypes",
    "Int8Tensor",
    "Int8TensorCPU",
    "IsImmediate",
    "IsNUMAEnabled",
    "Nets",
    "NumCudaDevices",
    "NumGpuDevices",
    "Predictor",
    "RegisteredOperators",
    "ResetBlob",
    "ResetWorkspace",
    "RootFolder",
    "RunNet",
    "RunNetOnce",
    "RunOperatorImmediate",
    "RunOperatorMultiple",
    "RunOperatorOnce",
    "RunOperatorsOnce",
    "RunPlan",
    "RunPlanInBackground",
    "SerializeBlob",
    "StartImmediate",
    "StopImmediate",
    "StringifyBlobName",
    "StringifyNetName",
    "StringifyProto",
    "SwitchWorkspace",
    "Workspace",
    "WorkspaceGuard",
    "Workspaces",
    "blobs",
    "caffe2_pb2",
    "has_cuda_support",
    "has_gpu_support",
    "has_hip_support",
    "is_asan",
    "operator_tracebacks",
    "scope",
    "utils",
]
