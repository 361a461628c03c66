# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from bridge.caffe2 import core as core
from bridge.caffe2.modeling import context as context
from bridge.caffe2.schema.columns import from_blob_list as from_blob_list
from bridge.caffe2.schema.field import Field as Field
from bridge.caffe2.task.setup_nets import SetupNets as SetupNets
from bridge.caffe2.task.setup_nets import add_setup_steps as add_setup_steps
from bridge.caffe2.task.setup_nets import get_setup_nets as get_setup_nets
from bridge.caffe2.task.task_group import Cluster as Cluster
from bridge.caffe2.task.task_group import Node as Node
from bridge.caffe2.task.task_group import Task as Task
from bridge.caffe2.task.task_group import TaskGroup as TaskGroup
from bridge.caffe2.task.task_group import TaskOutput as TaskOutput
from bridge.caffe2.task.task_group import TaskOutputList as TaskOutputList
from bridge.caffe2.task.task_group import WorkspaceType as WorkspaceType
from bridge.caffe2.task.task_group import final_output as final_output

__all__ = [
    "Cluster",
    "Field",
    "Node",
    "SetupNets",
    "Task",
    "TaskGroup",
    "TaskOutput",
    "TaskOutputList",
    "WorkspaceType",
    "add_setup_steps",
    "context",
    "core",
    "final_output",
    "from_blob_list",
    "get_setup_nets",
]
