# SPDX-License-Identifier: Apache-2.0
"""Runs inside the Python that has the real Caffe2, as a plain script; Python 3.8.

Reads lines of JSON, {"statement": ..., "number": ..., "repeats": ...}, and answers each with a line
that starts with ANSWER: the seconds for one run. Caffe2's own output may stand between.
"""

import json
import os
import sys

import numpy as np
import torch
from blob_values import values  # beside this file, as is loop
from caffe2.proto import caffe2_pb2
from caffe2.python import core, workspace
from loop import compile_loop, fed_runs, feed_and_fetch, strings, text

ANSWER = "seconds "
MESSAGES = {}


def hold(kind, n):
    """Feed the blob `kind` with `n` values, and keep its message."""
    workspace.FeedBlob(kind, values(kind, n))
    MESSAGES[kind] = workspace.SerializeBlob(kind)


def load_net(folder):
    """Make the net of net.pb, with the blobs of feeds.npz, in a workspace with nothing else.

    The net of init.pb makes others.
    """
    workspace.ResetWorkspace()
    net, init = caffe2_pb2.NetDef(), caffe2_pb2.NetDef()
    for name, message in (("net.pb", net), ("init.pb", init)):
        with open(os.path.join(folder, name), "rb") as file:
            message.ParseFromString(file.read())
    workspace.RunNetOnce(init)
    with np.load(os.path.join(folder, "feeds.npz")) as feeds:
        for name in feeds.files:
            workspace.FeedBlob(name, feeds[name])
    workspace.CreateNet(net)
    workspace.RunNet(net.name)


def double(inputs, outputs):
    """Y = 2 X, as an operator written in Python."""
    outputs[0].reshape(inputs[0].shape)
    np.multiply(inputs[0].data, 2, out=outputs[0].data)


def main() -> None:
    """Answer until the input ends."""
    # Which engines it lacks is of no interest: it says so for each convolution.
    workspace.GlobalInit(["caffe2", "--caffe2_log_level=2"])
    names = {
        "FeedBlob": workspace.FeedBlob,
        "FetchBlob": workspace.FetchBlob,
        "FetchTorch": workspace.FetchTorch,
        "HasBlob": workspace.HasBlob,
        "Workspace": workspace.C.Workspace,
        "text": text(),
        "octets": text().astype("S"),
        "feed_and_fetch": feed_and_fetch(workspace.FeedBlob, workspace.FetchBlob),
        "strings": strings(),
        "RunOperatorOnce": workspace.RunOperatorOnce,
        "in_python": core.CreatePythonOperator(double, ["x"], ["y"]),
        "relu": core.CreateOperator("Relu", ["x"], ["y"]),
        "SerializeBlob": workspace.SerializeBlob,
        "DeserializeBlob": workspace.DeserializeBlob,
        "RunNet": workspace.RunNet,
        "load_net": load_net,
        "few_rows": fed_runs(workspace.FeedBlob, workspace.RunNet, "sparse training"),
        "hold": hold,
        "messages": MESSAGES,
        "t": torch.zeros((2, 3)),
        "n": np.zeros(4096, np.float32),  # 16 KiB
    }
    workspace.FeedBlob("x", np.ones((64, 64), np.float32))
    workspace.FeedBlob("from_torch", names["t"])
    workspace.FeedBlob("from_numpy", names["n"])
    loops = {}
    for line in sys.stdin:
        task = json.loads(line)
        statement = task["statement"]
        if statement not in loops:
            loops[statement] = compile_loop(statement, names, task["repeats"])
        print(f"{ANSWER}{loops[statement](task['number'])!r}", flush=True)


if __name__ == "__main__":
    main()
