# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.session``: what runs nets, steps, plans and tasks."""

from __future__ import annotations

from bridge.caffe2 import core, workspace
from bridge.caffe2.tasks.cluster import Cluster, WorkspaceType
from bridge.caffe2.tasks.session import CompiledRunnable, LocalSession, Session
from bridge.caffe2.tasks.task import Task, TaskGroup

__all__ = [
    "Cluster",
    "CompiledRunnable",
    "LocalSession",
    "Session",
    "Task",
    "TaskGroup",
    "WorkspaceType",
    "core",
    "workspace",
]
