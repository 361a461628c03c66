# SPDX-License-Identifier: Apache-2.0
"""Whole networks, built operator by operator with narrow layers and seeded weights.

They have the structure of networks that Caffe2's model zoo made known, with fewer channels, so that
a run takes milliseconds.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .case import Case


class Graph:
    """A network that grows: operators, and the blobs that have to be fed."""

    def __init__(self, seed: int, **images: np.ndarray) -> None:
        self.random = np.random.RandomState(seed)
        self.feeds: dict[str, Any] = dict(images)
        self.steps: list[tuple[str, list[str], list[str], dict[str, Any]]] = []
        self.channels: dict[str, int] = {
            name: image.shape[1] for name, image in images.items() if image.ndim == 4
        }

    def add(self, op: str, inputs: list[str], outputs: list[str], **args: Any) -> str:
        self.steps.append((op, inputs, outputs, args))
        self.channels[outputs[0]] = self.channels.get(inputs[0], 0)
        return outputs[0]

    def weight(self, name: str, *shape: int, fan: int = 1, mean: float = 0.0) -> str:
        values = mean + self.random.randn(*shape) / np.sqrt(fan)
        self.feeds[name] = values.astype(np.float32)
        return name

    def conv(
        self, x: str, y: str, out: int, kernel: int, bias: bool = True, group: int = 1, **args: Any
    ) -> str:
        inside = self.channels[x] // group
        fan = inside * kernel * kernel // 2 + 1
        inputs = [x, self.weight(f"{y}_w", out, inside, kernel, kernel, fan=fan)]
        if bias:
            inputs.append(self.weight(f"{y}_b", out, fan=100))
        if group > 1:
            args["group"] = group
        self.add("Conv", inputs, [y], kernel=kernel, **args)
        self.channels[y] = out
        return y

    def norm(self, x: str, y: str, **args: Any) -> str:
        n = self.channels[x]
        names = [
            self.weight(f"{y}_{part}", n, fan=100, mean=mean)
            for part, mean in (("s", 1.0), ("b", 0.0), ("rm", 0.0), ("riv", 1.0))
        ]
        return self.add("SpatialBN", [x, *names], [y], is_test=1, **args)

    def relu(self, x: str) -> str:
        return self.add("Relu", [x], [x])

    def dense(self, x: str, y: str, inside: int, out: int, **args: Any) -> str:
        shape = (1, 1, out, inside) if args.get("axis_w") == 3 else (out, inside)
        weights = [self.weight(f"{y}_w", *shape, fan=inside), self.weight(f"{y}_b", out, fan=100)]
        return self.add("FC", [x, *weights], [y], **args)

    def case(self, name: str, results: list[str]) -> Case:
        return Case(name, self.feeds, self.steps, results)


def image(seed: int, *shape: int) -> np.ndarray:
    return np.random.RandomState(seed).randn(*shape).astype(np.float32)


def alexnet() -> Case:
    """Groups, LRN with its scale, a last pool with uneven pads, Dropout in test."""
    g = Graph(1, data=image(1, 1, 3, 115, 115))
    g.relu(g.conv("data", "conv1", 12, 11, stride=4, pad=0))
    lrn = {"size": 5, "alpha": 1e-4, "beta": 0.75, "bias": 1.0, "order": "NCHW"}
    g.add("LRN", ["conv1"], ["norm1", "_norm1_scale"], **lrn)
    g.add("MaxPool", ["norm1"], ["pool1"], kernel=3, stride=2, pad=0, order="NCHW")
    g.relu(g.conv("pool1", "conv2", 16, 5, group=2, stride=1, pad=2))
    g.add("LRN", ["conv2"], ["norm2", "_norm2_scale"], **lrn)
    g.add("MaxPool", ["norm2"], ["pool2"], kernel=3, stride=2, pad=0, order="NCHW")
    g.relu(g.conv("pool2", "conv3", 16, 3, stride=1, pad=1))
    g.relu(g.conv("conv3", "conv4", 16, 3, group=2, stride=1, pad=1))
    g.add(
        "MaxPool",
        ["conv4"],
        ["pool5"],
        kernel=3,
        stride=2,
        pad_t=0,
        pad_l=0,
        pad_b=1,
        pad_r=1,
        order="NCHW",
    )
    g.relu(g.dense("pool5", "fc6", 16 * 3 * 3, 32))
    g.add("Dropout", ["fc6"], ["fc6", "_fc6_mask"], ratio=0.5, is_test=1)
    g.dense("fc6", "fc8", 32, 10)
    g.add("Softmax", ["fc8"], ["prob"])
    return g.case("alexnet", ["norm1", "_norm2_scale", "pool5", "prob"])


def vgg() -> Case:
    """Blocks of 3 x 3 convolutions."""
    g = Graph(2, data=image(2, 2, 3, 32, 32))
    x = "data"
    for block, layers in enumerate((2, 2, 4), 1):
        for layer in range(1, layers + 1):
            x = g.relu(g.conv(x, f"conv{block}_{layer}", 6 * block, 3, stride=1, pad=1))
        x = g.add("MaxPool", [x], [f"pool{block}"], kernel=2, stride=2, pad=0)
    g.relu(g.dense(x, "fc6", 18 * 16, 24))
    g.add("Dropout", ["fc6"], ["fc6", "_fc6_mask"], ratio=0.5, is_test=1)
    g.dense("fc6", "fc8", 24, 10)
    g.add("Softmax", ["fc8"], ["prob"])
    return g.case("vgg", ["pool1", "fc8", "prob"])


def resnet() -> Case:
    """All of ResNet-50's 53 convolutions, with an eighth of its channels."""
    g = Graph(3, data=image(3, 1, 3, 64, 64))
    bn = {"epsilon": 1e-5, "order": "NCHW"}
    g.conv("data", "conv1", 8, 7, bias=False, stride=2, pad=3, order="NCHW")
    g.relu(g.norm("conv1", "conv1_bn", **bn))
    x = g.add("MaxPool", ["conv1_bn"], ["pool1"], kernel=3, stride=2, pad=1, order="NCHW")
    for stage, blocks in enumerate((3, 4, 6, 3)):
        for block in range(blocks):
            name = f"res{stage + 2}_{block}"
            width, stride = 8 * 2**stage, 2 if stage and not block else 1
            g.conv(x, f"{name}_2a", width, 1, bias=False, stride=stride, pad=0, order="NCHW")
            a = g.relu(g.norm(f"{name}_2a", f"{name}_2a_bn", **bn))
            g.conv(a, f"{name}_2b", width, 3, bias=False, stride=1, pad=1, order="NCHW")
            b = g.relu(g.norm(f"{name}_2b", f"{name}_2b_bn", **bn))
            g.conv(b, f"{name}_2c", 4 * width, 1, bias=False, stride=1, pad=0, order="NCHW")
            c = g.norm(f"{name}_2c", f"{name}_2c_bn", **bn)
            if not block:
                g.conv(x, f"{name}_1", 4 * width, 1, bias=False, stride=stride, order="NCHW")
                x = g.norm(f"{name}_1", f"{name}_1_bn", **bn)
            x = g.relu(g.add("Sum", [c, x], [c]))
    g.add("AveragePool", [x], ["pool5"], kernel=2, stride=1, order="NCHW")
    g.dense("pool5", "pred", 256, 10)
    g.add("Softmax", ["pred"], ["softmax"])
    return g.case("resnet", ["pool1", "pool5", "pred", "softmax"])


def inception() -> Case:
    """Branches put together, a mean of 7 x 7 with uneven pads, weights of four dimensions."""
    g = Graph(4, data=image(4, 1, 3, 56, 56))
    g.relu(g.conv("data", "conv1", 8, 7, stride=2, pad=3))
    x = g.add("MaxPool", ["conv1"], ["pool1"], kernel=3, stride=2, pad=0, order="NCHW")
    x = g.add(
        "LRN", [x], ["norm1", "_norm1"], size=5, alpha=1e-4, beta=0.75, bias=1.0, order="NCHW"
    )
    for name in ("3a", "3b"):
        g.relu(g.conv(x, f"{name}_1x1", 4, 1, stride=1, pad=0))
        g.relu(g.conv(x, f"{name}_3x3_reduce", 4, 1, stride=1, pad=0))
        g.relu(g.conv(f"{name}_3x3_reduce", f"{name}_3x3", 6, 3, stride=1, pad=1))
        g.relu(g.conv(x, f"{name}_5x5_reduce", 2, 1, stride=1, pad=0))
        g.relu(g.conv(f"{name}_5x5_reduce", f"{name}_5x5", 3, 5, stride=1, pad=2))
        pool = g.add("MaxPool", [x], [f"{name}_pool"], kernel=3, stride=1, pad=1, order="NCHW")
        g.relu(g.conv(pool, f"{name}_proj", 3, 1, stride=1, pad=0))
        branches = [f"{name}_{part}" for part in ("1x1", "3x3", "5x5", "proj")]
        x = g.add("Concat", branches, [f"{name}_output", f"_{name}_dims"], order="NCHW")
        g.channels[x] = 16
    x = g.add(
        "MaxPool",
        [x],
        ["pool3"],
        kernel=3,
        stride=2,
        pad_t=0,
        pad_l=0,
        pad_b=1,
        pad_r=1,
        order="NCHW",
    )
    g.add(
        "AveragePool",
        [x],
        ["pool5"],
        stride=1,
        pad_l=0,
        pad_t=0,
        pad_r=1,
        pad_b=1,
        kernel=7,
        order="NCHW",
    )
    g.add("Dropout", ["pool5"], ["pool5", "_pool5_mask"], ratio=0.4, is_test=1)
    g.dense("pool5", "classifier", 16, 10, axis_w=3)
    g.add("Softmax", ["classifier"], ["prob"])
    return g.case("inception", ["3a_output", "_3a_dims", "pool5", "prob"])


def densenet() -> Case:
    """Layers that see all before them; scales and offsets by channel, as in Caffe."""
    g = Graph(5, data=image(5, 1, 3, 32, 32))

    def normal(x: str, name: str) -> str:
        g.norm(x, name, epsilon=1e-5)
        n = g.channels[name]
        g.add(
            "Mul",
            [name, g.weight(f"{name}_w", n, fan=50, mean=1.0)],
            [f"{name}_in"],
            axis=1,
            broadcast=1,
        )
        return g.add(
            "Add", [f"{name}_in", g.weight(f"{name}_o", n, fan=50)], [name], axis=1, broadcast=1
        )

    g.conv("data", "conv1", 8, 7, bias=False, stride=2, pad=3)
    g.relu(normal("conv1", "conv1/bn"))
    x = g.add("MaxPool", ["conv1/bn"], ["pool1"], kernel=3, stride=2, pad=1)
    for layer in range(4):
        name = f"conv2_{layer}"
        g.relu(normal(x, f"{name}/x1/bn"))
        g.conv(f"{name}/x1/bn", f"{name}/x1", 8, 1, bias=False, stride=1, pad=0)
        g.relu(normal(f"{name}/x1", f"{name}/x2/bn"))
        g.conv(f"{name}/x2/bn", f"{name}/x2", 4, 3, bias=False, stride=1, pad=1)
        wider = g.channels[x] + 4
        x = g.add("Concat", [x, f"{name}/x2"], [f"concat_{layer}", f"_concat_{layer}_dims"])
        g.channels[x] = wider
    x = g.add("AveragePool", [x], ["pool2"], kernel=2, stride=2, pad=0)
    x = g.add("AveragePool", [x], ["pool5"], stride=1, pad=0, kernel=0, global_pooling=1)
    g.conv(x, "fc6", 10, 1)
    return g.case("densenet", ["concat_3", "_concat_3_dims", "pool5", "fc6"])


def mobile() -> Case:
    """Depthwise convolutions and shortcuts."""
    g = Graph(6, data=image(6, 1, 3, 32, 32))
    x = g.relu(g.conv("data", "conv0", 8, 3, stride=2, pad=1, order="NCHW"))
    for block, stride in enumerate((1, 2, 1)):
        name = f"block{block}"
        inside = g.channels[x]
        g.relu(g.conv(x, f"{name}_pw", 16, 1, stride=1, pad=0, order="NCHW"))
        g.conv(
            f"{name}_pw",
            f"{name}_dw",
            16,
            3,
            bias=False,
            group=16,
            stride=stride,
            pad=1,
            order="NCHW",
        )
        y = g.conv(f"{name}_dw", f"{name}_pwl", inside, 1, stride=1, pad=0, order="NCHW")
        x = g.add("Sum", [y, x], [f"{name}_sum"]) if stride == 1 else y
    g.add("AveragePool", [x], ["pool"], global_pooling=1, order="NCHW")
    g.dense("pool", "logits", 8, 5)
    g.add("Sigmoid", ["logits"], ["scores"])
    return g.case("mobile", ["block0_sum", "pool", "scores"])


def detector() -> Case:
    """Proposals, regions, refined boxes and the best of them."""
    g = Graph(7, data=image(7, 1, 3, 96, 96), im_info=np.array([[96, 96, 1]], np.float32))
    x = "data"
    for layer, out in enumerate((8, 12, 16)):
        x = g.relu(g.conv(x, f"conv{layer}", out, 3, stride=2, pad=1))
    rpn = g.relu(g.conv(x, "rpn", 16, 3, stride=1, pad=1))
    g.conv(rpn, "rpn_logits", 3, 1, stride=1, pad=0)
    g.add("Sigmoid", ["rpn_logits"], ["rpn_probs"])
    g.conv(rpn, "rpn_deltas", 12, 1, stride=1, pad=0)
    g.feeds["rpn_deltas_w"] *= 0.3
    g.feeds["anchors"] = np.array(
        [[-12, -12, 19, 19], [-24, -12, 31, 19], [-12, -24, 19, 31]], np.float32
    )
    g.add(
        "GenerateProposals",
        ["rpn_probs", "rpn_deltas", "im_info", "anchors"],
        ["rois", "roi_probs"],
        spatial_scale=0.125,
        pre_nms_topN=200,
        post_nms_topN=20,
        nms_thresh=0.6,
        min_size=4.0,
    )
    g.add(
        "RoIAlign",
        [x, "rois"],
        ["features"],
        spatial_scale=0.125,
        pooled_h=3,
        pooled_w=3,
        sampling_ratio=2,
    )
    g.relu(g.dense("features", "fc1", 16 * 9, 24))
    g.dense("fc1", "cls_score", 24, 4)
    g.add("Softmax", ["cls_score"], ["cls_prob"])
    g.dense("fc1", "bbox_pred", 24, 16)
    g.add(
        "BBoxTransform",
        ["rois", "bbox_pred", "im_info"],
        ["pred_bbox"],
        weights=[10.0, 10.0, 5.0, 5.0],
    )
    g.add(
        "BoxWithNMSLimit",
        ["cls_prob", "pred_bbox"],
        ["scores", "boxes", "classes"],
        score_thresh=0.05,
        nms=0.5,
        detections_per_im=15,
    )
    return g.case("detector", ["rois", "roi_probs", "scores", "boxes", "classes"])


def perceptron() -> Case:
    """A loss with its gradients, and one step of training."""
    x = image(8, 6, 5)
    g = Graph(8, x=x, label=np.array([0, 1, 2, 0, 1, 2], np.int32))
    g.feeds["rate"] = np.array([-0.1], np.float32)
    g.feeds["one"] = np.array([1.0], np.float32)
    g.feeds["loss_grad"] = np.array(1.0, np.float32)
    g.dense("x", "h", 5, 8)
    g.add("Tanh", ["h"], ["t"])
    g.dense("t", "y", 8, 3)
    g.add("SoftmaxWithLoss", ["y", "label"], ["p", "loss"])
    g.add("SoftmaxWithLossGradient", ["y", "label", "p", "loss_grad"], ["y_grad"])
    g.add("FCGradient", ["t", "y_w", "y_grad"], ["y_w_grad", "y_b_grad", "t_grad"])
    g.add("TanhGradient", ["t", "t_grad"], ["h_grad"])
    g.add("FCGradient", ["x", "h_w", "h_grad"], ["h_w_grad", "h_b_grad"])
    for name in ("y_w", "y_b", "h_w", "h_b"):
        g.add("WeightedSum", [name, "one", f"{name}_grad", "rate"], [name])
    return g.case("perceptron", ["loss", "p", "y_w", "h_w", "h_b"])


NETS = [
    alexnet(),
    vgg(),
    resnet(),
    inception(),
    densenet(),
    mobile(),
    detector(),
    perceptron(),
]
