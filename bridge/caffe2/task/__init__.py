# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.task``: steps and their outputs, which a session runs."""

from __future__ import annotations

from bridge.caffe2 import core
from bridge.caffe2.modeling import context
from bridge.caffe2.schema.columns import from_blob_list
from bridge.caffe2.schema.field import Field
from bridge.caffe2.task.cluster import Cluster, Node, WorkspaceType
from bridge.caffe2.task.outputs import TaskOutput, TaskOutputList
from bridge.caffe2.task.setup_nets import SetupNets, add_setup_steps, get_setup_nets
from bridge.caffe2.task.task_group import Task, TaskGroup, final_output

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
