# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.net_builder``: nets, loops and conditions by `with` blocks."""

from __future__ import annotations

from bridge.caffe2 import context, core
from bridge.caffe2.models.control_operators import add_if_op, add_while_op
from bridge.caffe2.tasks.builder import NetBuilder
from bridge.caffe2.tasks.operations import Operations, ops
from bridge.caffe2.tasks.task import Task, TaskGroup

__all__ = [
    "NetBuilder",
    "Operations",
    "Task",
    "TaskGroup",
    "add_if_op",
    "add_while_op",
    "context",
    "core",
    "ops",
]
