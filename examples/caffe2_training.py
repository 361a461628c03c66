# SPDX-License-Identifier: Apache-2.0
"""Train a convolutional network on handwritten digits with a script written for Caffe2.

The script does not import the bridge: run it by ``python -m bridge.caffe2 caffe2_training.py``, or
with Caffe2 by ``python caffe2_training.py``; both compute the same. The digits are 1,797 images of
8 x 8 pixels. Exits with 1 unless more than 90 % of the held-out digits are recognized.
"""

import os
import sys

import numpy as np
from caffe2.python import brew, model_helper, workspace

# From "Optical Recognition of Handwritten Digits" (E. Alpaydin, C. Kaynak, 1998), UCI Machine
# Learning Repository, CC BY 4.0: images (1797, 64) of values from 0 to 16, and labels.
DIGITS = os.path.join(os.path.dirname(__file__), "data", "digits.npz")
BATCH = 64
EPOCHS = 12
HELD_OUT = 360  # digits


def add_network(model, data):
    """Add the layers; return the blob of the scores of the ten digits."""
    conv = brew.conv(model, data, "conv", dim_in=1, dim_out=12, kernel=3, pad=1)
    pool = brew.max_pool(model, brew.relu(model, conv, conv), "pool", kernel=2, stride=2)
    hidden = brew.fc(model, pool, "hidden", dim_in=12 * 4 * 4, dim_out=48)
    brew.relu(model, hidden, hidden)
    return brew.fc(model, hidden, "scores", dim_in=48, dim_out=10)


def add_training(model, loss):
    """Add gradients, and a step of gradient descent for each parameter."""
    model.AddGradientOperators([loss])
    iteration = brew.iter(model, "iteration")
    rate = model.net.LearningRate(
        iteration, "rate", base_lr=-0.15, policy="step", stepsize=100, gamma=0.8
    )
    one = model.param_init_net.ConstantFill([], "one", shape=[1], value=1.0)
    for param in model.params:
        model.net.WeightedSum([param, one, model.param_to_grad[param], rate], param)


def main():
    """Train, printing the accuracy after each epoch; return the exit status."""
    with np.load(DIGITS) as digits:
        pictures = (digits["images"] / 16).astype(np.float32).reshape(-1, 1, 8, 8)
        labels = digits["labels"].astype(np.int32)
    order = np.random.RandomState(0).permutation(len(labels))
    train, test = order[HELD_OUT:], order[:HELD_OUT]

    trainer = model_helper.ModelHelper(name="trainer", arg_scope={"order": "NCHW"})
    scores = add_network(trainer, "data")
    _, loss = trainer.net.SoftmaxWithLoss([scores, "label"], ["softmax", "loss"])
    add_training(trainer, loss)
    trainer.param_init_net.set_rand_seed(1)
    workspace.RunNetOnce(trainer.param_init_net)

    tester = model_helper.ModelHelper(name="tester", init_params=False)
    softmax = brew.softmax(tester, add_network(tester, "data"), "softmax")
    brew.accuracy(tester, [softmax, "label"], "accuracy")

    workspace.FeedBlob("data", pictures[train[:BATCH]])
    workspace.FeedBlob("label", labels[train[:BATCH]])
    workspace.CreateNet(trainer.net)
    workspace.CreateNet(tester.net)

    for epoch in range(EPOCHS):
        np.random.RandomState(epoch).shuffle(train)
        losses = []
        for at in range(0, len(train) - BATCH + 1, BATCH):
            batch = train[at : at + BATCH]
            workspace.FeedBlob("data", pictures[batch])
            workspace.FeedBlob("label", labels[batch])
            workspace.RunNet(trainer.net)
            losses.append(float(workspace.FetchBlob("loss")))
        workspace.FeedBlob("data", pictures[test])
        workspace.FeedBlob("label", labels[test])
        workspace.RunNet(tester.net)
        accuracy = float(workspace.FetchBlob("accuracy"))
        print(f"epoch {epoch + 1:2}: loss {np.mean(losses):.3f}, accuracy {accuracy:.3f}")

    print(f"{100 * accuracy:.1f}% of {len(test)} held-out digits recognized")
    return 0 if accuracy > 0.9 else 1


if __name__ == "__main__":
    sys.exit(main())
