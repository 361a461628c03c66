# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.task``: steps and their outputs, which a session runs."""

from __future__ import annotations

from bridge.lazy import lazily

__getattr__, __dir__ = lazily(
    __name__,
    {
        "bridge.caffe2.core": "core",
        "bridge.caffe2.modeling.context": "context",
        "bridge.caffe2.schema.columns": "from_blob_list",
        "bridge.caffe2.schema.field": "Field",
        "bridge.caffe2.task.task_group": (
            "Cluster Node Task TaskGroup TaskOutput TaskOutputList WorkspaceType final_output"
        ),
        "bridge.caffe2.task.setup_nets": "SetupNets add_setup_steps get_setup_nets",
    },
)
