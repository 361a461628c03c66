# SPDX-License-Identifier: Apache-2.0
"""The losses of Detectron: of boxes, and of classes by groups of channels.

Caffe2 computes them on CUDA alone; here they are computed on the CPU, too. Classes of image
elements are groups of channels: X (N, A * num_classes, H, W) has `num_classes` scores of each of
the A anchors at each pixel.

Follows modules/detectron, PyTorch 1.8.1.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import operator
from bridge.caffe2.operators.base.channels import ChannelsFirst
from bridge.caffe2.operators.base.checks import INT32, require, require_range, shaped_like

_LEAST = 1.1754943508222875e-38  # the least normal float32
_INT_LEAST = -(2**31)


class SmoothL1:
    """The loss x * x / (2 * beta) where abs(x) < beta, else abs(x) - beta / 2.

    Arguments: `beta` (1), and `scale` (1), by which the sum is multiplied.
    """

    takes = "float beta, float scale"

    def __init__(self, arguments: Arguments) -> None:
        self.beta: float = arguments.single("beta", 1.0)
        self.scale: float = arguments.single("scale", 1.0)
        require(self.beta > 0, "beta is positive", self.beta)
        require(self.scale >= 0, "scale is not negative", self.scale)

    def of(self, x: Tensor) -> Tensor:
        """Return the loss of each element."""
        return functional.smooth_l1_loss(x, torch.zeros_like(x), reduction="none", beta=self.beta)

    def slope(self, x: Tensor) -> Tensor:
        """Return the gradient of `of`."""
        return torch.where(x.abs() < self.beta, x / self.beta, x.sign())


def _slope_of_loss(dloss: Tensor) -> Tensor:
    """Return the gradient of a loss as 0-d."""
    require(dloss.numel() == 1, "the gradient of the loss has one element", dloss)
    return dloss.view(())


def _apart(y_hat: Tensor, y: Tensor, inner: Tensor, outer: Tensor) -> tuple[Tensor, Tensor]:
    """Return inner * (Y_hat - Y) and the outer weights, in the shape of Y_hat."""
    require(y_hat.dim() > 0 and y.dim() > 0, "Y_hat and Y have dimensions", y_hat, y)
    require(y_hat.shape[0] == y.shape[0], "Y_hat and Y have as many rows", y_hat, y)
    y, inner, outer = (shaped_like(one.detach(), y_hat) for one in (y, inner, outer))
    return (y_hat - y) * inner, outer


@operator("SmoothL1Loss", gradient="$Gradient i0 i1 i2 i3 g0 > 0")
def smooth_l1_loss(
    y_hat: Tensor, y: Tensor, alpha_in: Tensor, alpha_out: Tensor, *, loss: SmoothL1
) -> Tensor:
    """(Y_hat, Y, inner weights, outer weights: all (N, ...)) -> loss ().

    It is the sum of outer * SmoothL1(inner * (Y_hat - Y)), times scale / N.
    """
    apart, outer = _apart(y_hat, y, alpha_in, alpha_out)
    return (loss.of(apart) * outer).sum() * (loss.scale / max(y.shape[0], 1))


@operator("SmoothL1LossGradient")
def smooth_l1_loss_gradient(
    y_hat: Tensor, y: Tensor, alpha_in: Tensor, alpha_out: Tensor, dloss: Tensor, *, loss: SmoothL1
) -> Tensor:
    """(Y_hat, Y, inner weights, outer weights, dloss: ()) -> dY_hat."""
    apart, outer = _apart(y_hat, y, alpha_in, alpha_out)
    factor = _slope_of_loss(dloss) * (loss.scale / max(y.shape[0], 1))
    return loss.slope(apart) * factor * shaped_like(alpha_in, y_hat) * outer


def _selected(
    y_hat: Tensor, y: Tensor, locations: Tensor, normalizer: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the indices of the selected elements of Y_hat, their Y, and the divisor."""
    require(y_hat.dim() == 4, "Y_hat has 4 dimensions", y_hat)
    require(y.dim() == 2 and y.shape[1] == 4, "Y has 4 columns", y)
    require(locations.shape == y.shape, "there are as many locations as rows of Y", locations, y)
    n, channels, height, width = y_hat.shape
    places = locations.long()
    for d, (what, end) in enumerate(
        (("images", n), ("first channels", channels - 3), ("rows", height), ("columns", width))
    ):
        require_range(f"the {what} of locations", places[:, d], end)
    first = ((places[:, 0] * channels + places[:, 1]) * height + places[:, 2]) * width
    steps = torch.arange(4, device=y_hat.device) * (height * width)
    index = ((first + places[:, 3]).view(-1, 1) + steps).view(-1)
    return index, y.detach().reshape(-1), _positives(normalizer)


def _positives(count: Tensor) -> Tensor:
    """Return the number of positive examples, at least 1, as a tensor ()."""
    require(count.numel() == 1, "the number of positive examples is one element", count)
    return count.detach().view(()).clamp(min=1)


@operator("SelectSmoothL1Loss", gradient="$Gradient i0 i1 i2 i3 g0 > 0")
def select_smooth_l1_loss(
    y_hat: Tensor, y: Tensor, locations: Tensor, normalizer: Tensor, *, loss: SmoothL1
) -> Tensor:
    """(Y_hat: (N, C, H, W), Y: (M, 4), locations: (M, 4), normalizer) -> loss ().

    A row of `locations`, in float32, is image, channel, row and column: the row of Y is compared
    with the elements of four channels from there. Of several rows with one location the last
    counts. The sum of SmoothL1 is multiplied by scale / max(normalizer, 1).
    """
    index, wanted, count = _selected(y_hat, y, locations, normalizer)
    losses = loss.of(y_hat.reshape(-1)[index] - wanted)
    placed = y_hat.new_zeros(y_hat.numel()).index_put((index,), losses)
    return placed.sum() * loss.scale / count


@operator("SelectSmoothL1LossGradient")
def select_smooth_l1_loss_gradient(
    y_hat: Tensor,
    y: Tensor,
    locations: Tensor,
    normalizer: Tensor,
    dloss: Tensor,
    *,
    loss: SmoothL1,
) -> Tensor:
    """(Y_hat, Y, locations, normalizer, dloss: ()) -> dY_hat."""
    index, wanted, count = _selected(y_hat, y, locations, normalizer)
    slopes = loss.slope(y_hat.view(-1)[index] - wanted) * (
        _slope_of_loss(dloss) * loss.scale / count
    )
    return y_hat.new_zeros(y_hat.numel()).index_put((index,), slopes).view(y_hat.shape)


def _by_group(x: Tensor, num_classes: int) -> Tensor:
    """Return scores (N, A * num_classes, H, W) as (N, A, num_classes, H, W)."""
    require(x.dim() == 4, "X has 4 dimensions", x)
    fits = num_classes > 0 and x.shape[1] % num_classes == 0
    require(fits, "channels are groups of num_classes", x, num_classes)
    return x.view(x.shape[0], -1, num_classes, *x.shape[2:])


def _labels(labels: Tensor, groups: Tensor) -> Tensor:
    """Return the labels of groups (N, A, classes, H, W) as (N, A, 1, H, W)."""
    n, anchors, _, height, width = groups.shape
    fits = labels.numel() == n * anchors * height * width
    require(fits, "there is one label per group of channels and pixel", labels)
    return labels.view(n, anchors, 1, height, width)


class FocalLoss:
    """The loss -alpha * (1 - p)**gamma * log(p), summed, times scale / max(positives, 1).

    Examples of the background have 1 - alpha in place of alpha. Arguments: `gamma` (1), `alpha`
    (0.25), `scale` (1), and `num_classes`, 80 of sigmoids and 81 of a softmax.
    """

    takes = "float gamma, float alpha, float scale, int num_classes, str order"

    def __init__(self, arguments: Arguments) -> None:
        self.gamma: float = arguments.single("gamma", 1.0)
        self.alpha: float = arguments.single("alpha", 0.25)
        self.scale: float = arguments.single("scale", 1.0)
        usual = 80 if arguments.type.startswith("Sigmoid") else 81
        self.classes: int = arguments.single("num_classes", usual)
        require(self.scale >= 0, "scale is not negative", self.scale)
        ChannelsFirst(arguments)

    def share(self, label: Tensor, positives: Tensor) -> Tensor:
        """Return the factor of the loss of each example, 0 of label -1."""
        kinds = (label == 0) * (1 - self.alpha) + (label >= 1) * self.alpha
        return kinds * self.scale / _positives(positives)


def _is_class(labels: Tensor, groups: Tensor) -> tuple[Tensor, Tensor]:
    """Return where the class of a channel is the label, and where another one is."""
    label = _labels(labels, groups)
    classes = torch.arange(1, groups.shape[2] + 1, device=groups.device).view(-1, 1, 1)
    same = label == classes
    return same, ~same & (label != -1)


def _log_not(x: Tensor) -> Tensor:
    """Return log(1 - sigmoid(x)), as Caffe2 computes it."""
    return -x.clamp(min=0) - torch.log(1 + torch.exp(-x.abs()))


@operator("SigmoidFocalLoss", types={"labels": INT32}, gradient="$Gradient i0 i1 i2 g0 > 0")
def sigmoid_focal_loss(
    logits: Tensor, labels: Tensor, positives: Tensor, *, focal: FocalLoss
) -> Tensor:
    """(X: (N, A * num_classes, H, W), labels: (N, A, H, W), positives: ()) -> loss ().

    Each channel is a class of its own. Label i is the class of channel i - 1 of the group, 0 the
    background; groups with label -1 are ignored.
    """
    x = _by_group(logits, focal.classes)
    same, other = _is_class(labels, x)
    p = torch.sigmoid(x)
    hit = (1 - p) ** focal.gamma * torch.log(p.clamp(min=_LEAST)) * focal.alpha
    miss = p**focal.gamma * _log_not(x) * (1 - focal.alpha)
    total = torch.where(same, hit, torch.where(other, miss, 0.0)).sum()
    return total * -focal.scale / _positives(positives)


@operator("SigmoidFocalLossGradient", types={"labels": INT32})
def sigmoid_focal_loss_gradient(
    logits: Tensor, labels: Tensor, positives: Tensor, dloss: Tensor, *, focal: FocalLoss
) -> Tensor:
    """(X, labels, positives, dloss: ()) -> dX."""
    x = _by_group(logits, focal.classes)
    same, other = _is_class(labels, x)
    p = torch.sigmoid(x)
    turn = 1 - p - p * focal.gamma * torch.log(p.clamp(min=_LEAST))
    hit = (1 - p) ** focal.gamma * turn * focal.alpha
    turn = _log_not(x) * (1 - p) * focal.gamma - p
    miss = p**focal.gamma * turn * (1 - focal.alpha)
    factor = _slope_of_loss(dloss) * -focal.scale / _positives(positives)
    return (torch.where(same, hit, torch.where(other, miss, 0.0)) * factor).view(logits.shape)


def _of_label(labels: Tensor, p: Tensor) -> tuple[Tensor, Tensor]:
    """Return the labels, and the probability of each: both (N, A, 1, H, W)."""
    label = _labels(labels, p)
    require_range("labels", label, p.shape[2], _INT_LEAST)
    return label, p.gather(2, label.clamp(min=0).long())


@operator("SoftmaxFocalLoss", types={"labels": INT32}, gradient="$Gradient i0 i1 i2 o1 g0 > 0")
def softmax_focal_loss(
    scores: Tensor, labels: Tensor, positives: Tensor, *, focal: FocalLoss
) -> tuple[Tensor, Tensor]:
    """(X: (N, A * num_classes, H, W), labels: (N, A, H, W), positives: ()) -> loss (), P.

    P, one-dimensional, is the softmax of each group of channels. Label 0 is the background; groups
    with a negative label are ignored. Raises EnforceNotMet: a label is not below `num_classes`.
    """
    p = torch.softmax(_by_group(scores, focal.classes), 2)
    label, found = _of_label(labels, p)
    losses = (1 - found) ** focal.gamma * torch.log(found.clamp(min=_LEAST))
    loss = -(losses * focal.share(label, positives)).sum()
    return loss, p.detach().reshape(-1)  # Caffe2 has no gradient of P here


@operator("SoftmaxFocalLossGradient", types={"labels": INT32})
def softmax_focal_loss_gradient(
    scores: Tensor, labels: Tensor, positives: Tensor, p: Tensor, dloss: Tensor, *, focal: FocalLoss
) -> Tensor:
    """(X, labels, positives, P, dloss: ()) -> dX."""
    p = _by_group(shaped_like(p, scores), focal.classes)
    label, found = _of_label(labels, p)
    gamma = focal.gamma
    log = torch.log(found.clamp(min=_LEAST))
    rate = gamma * (1 - found) ** (gamma - 1) * found * log - (1 - found) ** gamma
    rate = torch.where(label >= 0, rate * focal.share(label, positives), 0.0)
    classes = torch.arange(focal.classes, device=p.device).view(-1, 1, 1)
    made = rate * _slope_of_loss(dloss) * ((label == classes).to(p.dtype) - p)
    return made.view(scores.shape)


@operator("GroupSpatialSoftmax", gradient="$Gradient o0 g0 > 0")
def group_spatial_softmax(x: Tensor, *, num_classes: int = 81, order: ChannelsFirst) -> Tensor:
    """X: (N, A * num_classes, H, W) -> the softmax of each group of `num_classes` channels."""
    return torch.softmax(_by_group(x, num_classes), 2).view(x.shape)


@operator("GroupSpatialSoftmaxGradient", defaults=group_spatial_softmax)
def group_spatial_softmax_gradient(
    y: Tensor, dy: Tensor, *, num_classes: int, order: ChannelsFirst
) -> Tensor:
    """(Y, dY) -> dX."""
    p = _by_group(y, num_classes)
    slopes = shaped_like(dy, y).view(p.shape)
    return (p * (slopes - (p * slopes).sum(2, keepdim=True))).view(y.shape)


class CrossEntropy:
    """The arguments `scale` (1), and `normalize` (1): divide by the number of targets."""

    takes = "float scale, int normalize"

    def __init__(self, arguments: Arguments) -> None:
        self.scale: float = arguments.single("scale", 1.0)
        self.normalizes = arguments.single("normalize", 1)
        require(self.scale >= 0, "scale is not negative", self.scale)

    def shared(self, x: Tensor, wanted: Tensor) -> Tensor:
        """Return `x` times scale, over the number of targets that are `wanted`."""
        require(self.normalizes in (0, 1), "normalize is 0 or 1", self.normalizes)
        return x / (wanted.sum().float().clamp(min=1e-5) if self.normalizes else 1.0) * self.scale


@operator("SigmoidCrossEntropyLoss", types={"targets": INT32}, gradient="$Gradient i0 i1 g0 > 0")
def sigmoid_cross_entropy_loss(x: Tensor, targets: Tensor, *, loss: CrossEntropy) -> Tensor:
    """(X, targets of the same size: 0, 1, or -1 to ignore) -> loss ().

    It is the sum of the cross entropies of sigmoid(X), shared as CrossEntropy says.
    """
    target = shaped_like(targets, x)
    wanted = target != -1
    losses = -x * (target - (x >= 0).to(x.dtype)) + torch.log(1 + torch.exp(-x.abs()))
    return loss.shared(torch.where(wanted, losses, 0.0).sum(), wanted)


@operator("SigmoidCrossEntropyLossGradient", types={"targets": INT32})
def sigmoid_cross_entropy_loss_gradient(
    x: Tensor, targets: Tensor, dloss: Tensor, *, loss: CrossEntropy
) -> Tensor:
    """(X, targets, dloss: ()) -> dX."""
    target = shaped_like(targets, x)
    wanted = target != -1
    factor = loss.shared(_slope_of_loss(dloss), wanted)
    return torch.where(wanted, torch.sigmoid(x) - target, 0.0) * factor
