# SPDX-License-Identifier: Apache-2.0
"""Record ``predictor.mdl``, a predictor export, with the real Caffe2 of PyTorch 1.8.1."""

import os

import numpy as np
from caffe2.python import brew, model_helper, workspace
from caffe2.python.predictor import predictor_exporter

PATH = os.path.join(os.path.dirname(os.path.abspath(__file__)), "predictor.mdl")

model = model_helper.ModelHelper("m")
brew.fc(model, "data", "fc1", 4, 3)
brew.relu(model, "fc1", "fc1")
brew.softmax(model, "fc1", "prob")
workspace.RunNetOnce(model.param_init_net)
workspace.FeedBlob("data", np.zeros((2, 4), np.float32))
meta = predictor_exporter.PredictorExportMeta(
    predict_net=model.net.Proto(),
    parameters=[str(parameter) for parameter in model.params],
    inputs=["data"],
    outputs=["prob"],
    shapes={"data": [2, 4], "prob": [2, 3]},
)
if os.path.exists(PATH):
    os.remove(PATH)
predictor_exporter.save_to_db("minidb", PATH, meta)
