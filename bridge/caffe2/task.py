# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.task``: steps and their outputs, which a session runs."""

from __future__ import annotations

from bridge.caffe2 import context, core
from bridge.caffe2.nets.record_columns import from_blob_list
from bridge.caffe2.nets.record_field import Field
from bridge.caffe2.tasks.cluster import Cluster, Node, WorkspaceType
from bridge.caffe2.tasks.setup_nets import SetupNets, add_setup_steps, get_setup_nets
from bridge.caffe2.tasks.task import Task, TaskGroup, final_output
from bridge.caffe2.tasks.task_outputs import TaskOutput, TaskOutputList

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
