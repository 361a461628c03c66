# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.predictor.mobile_exporter``: nets for a Predictor.

>>> import numpy as np
>>> from bridge.caffe2 import core, mobile_exporter, workspace
>>> net = core.Net("exported")
>>> y = net.Add(["data", "bias"], "y")
>>> workspace.FeedBlob("bias", np.array([1.0], np.float32))
True
>>> init_net, predict_net = mobile_exporter.Export(workspace, net, ["bias"])
>>> workspace.Predictor(init_net, predict_net).run({"data": np.array([2.0], np.float32)})
[array([3.], dtype=float32)]
>>> workspace.ResetWorkspace()
True
"""

from __future__ import annotations

from bridge.caffe2.nets.mobile_export import Export, add_tensor

__all__ = ["Export", "add_tensor"]
