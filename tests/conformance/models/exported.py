# SPDX-License-Identifier: Apache-2.0
"""A model in a file, written by either Caffe2: ``python3.8 exported.py exported.minidb``.

With the interpreter that has the Caffe2 of PyTorch 1.8.1 it writes what is beside this file.
"""

import sys

import numpy as np

DATA = np.arange(6, dtype=np.float32).reshape(2, 3)


def export(caffe2, path):
    """Export a small model by `caffe2`, an object with the modules; return its output for DATA."""
    core, workspace = caffe2.core, caffe2.workspace
    workspace.ResetWorkspace()
    net = core.Net("small")
    net.FC(["data", "w", "b"], "hidden")
    net.Relu("hidden", "out")
    net.Proto().arg.add(name="model_id", i=7)
    workspace.FeedBlob("w", np.linspace(-1, 1, 12).astype(np.float32).reshape(4, 3))
    workspace.FeedBlob("b", np.arange(4, dtype=np.float32))
    extra, more = core.Net("extra"), core.Net("more")
    extra.ConstantFill(["data"], "data", value=1.0)
    more.ConstantFill([], "shared", shape=[2], value=2.0)
    meta = caffe2.predictor_exporter.PredictorExportMeta(
        net,
        ["w", core.BlobReference("b")],
        ["data"],
        ["out"],
        shapes={"data": (1, 3), "out": (1, 4)},
        extra_init_net=extra,
        global_init_net=more,
        net_type="dag",
        num_workers=2,
    )
    caffe2.predictor_exporter.save_to_db("minidb", path, meta)
    workspace.FeedBlob("data", DATA)
    workspace.RunNetOnce(net)
    return workspace.FetchBlob("out")


if __name__ == "__main__":
    from types import SimpleNamespace

    from caffe2.python import core, workspace
    from caffe2.python.predictor import predictor_exporter

    modules = SimpleNamespace(core=core, workspace=workspace, predictor_exporter=predictor_exporter)
    export(modules, sys.argv[1])
