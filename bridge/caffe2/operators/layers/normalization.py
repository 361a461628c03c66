# SPDX-License-Identifier: Apache-2.0
"""Normalization by channel, image, group or row."""

from __future__ import annotations

from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.channels import channels_first, channels_last, enforce_per_channel
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import functional, torch
from bridge.caffe2.operators.base.torch_operator import FLOATS
from bridge.caffe2.operators.layers.matrix_products import as_matrix

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from torch import Tensor

__all__ = ["GroupNorm", "InstanceNorm", "LRN", "LayerNorm", "RMSNorm", "SpatialBN"]


@register_operator("SpatialBN")
class SpatialBN(FloatOperator):
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, per channel.

    With `is_test`: (X, scale, bias, mean, var) -> Y. Otherwise the mean and variance are those of
    X, or are computed from sums over `num_batches` batches (inputs 5 and 6); the outputs are Y,
    running mean and variance in place of inputs 3 and 4, the mean, and 1 / the deviation.
    Arguments: `is_test` (required), `epsilon` (1e-5), `momentum` (0.9), `order` (NCHW),
    `num_batches` (1).
    Raises EnforceNotMet: a parameter does not have one value per channel, or the number of outputs
    is wrong.
    Follows SpatialBNOp, caffe2/operators/spatial_batch_norm_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.order = self.image_order()
        self.enforce(self.HasArgument("is_test"), "the argument is_test is set")
        self.is_test = bool(self.GetSingleArgument("is_test", 0))
        self.epsilon = self.GetSingleArgument("epsilon", 1e-5)
        self.momentum = self.GetSingleArgument("momentum", 0.9)
        self.batches = self.GetSingleArgument("num_batches", 1)
        self.enforce(
            self.OutputSize() == (1 if self.is_test else 5),
            "there is one output in test, five in training",
        )
        self.enforce(self.epsilon > 0, "epsilon is positive", self.epsilon)
        self.enforce(0 <= self.momentum <= 1, "momentum is in [0, 1]", self.momentum)

    def RunOnDevice(self) -> None:
        x = channels_first(self.x(0), self.order)
        self.enforce(x.dim() >= 2 and x.shape[1] > 0, "X has a channel dimension", x)
        scale, bias = self._channels(1, x), self._channels(2, x)
        if x.shape[0] == 0 and self.is_test:
            self.out(0, self.Input(0).shape)
            return
        if self.is_test:
            mean, var = self._channels(3, x), self._channels(4, x)
            y = torch.batch_norm(x, scale, bias, mean, var, False, 0.0, self.epsilon, False)
            self.put(0, channels_last(y, self.order))
        else:
            self._train(x, scale, bias)

    def _channels(self, i: int, x: Tensor) -> Tensor:
        values = self.x(i)
        if values.numel() != x.shape[1]:
            self.enforce(False, f"input {i} has one value per channel", values, x)
        return values if values.dim() == 1 else values.reshape(-1)

    def _train(self, x: Tensor, scale: Tensor, bias: Tensor) -> None:
        channels = x.shape[1]
        for i, o in ((3, 1), (4, 2)):
            self.enforce(self.IsInputOutputAlias(i, o), f"output {o} is in place of input {i}")
        count = self.batches * x.numel() // channels
        if x.shape[0] == 0:
            mean = var = rstd = torch.zeros(channels)
        elif self.batches > 1:
            mean = self._channels(5, x) / count
            var = self._channels(6, x) / count - mean.square()
        else:
            var, mean = torch.var_mean(x, [0, *range(2, x.dim())], correction=0)
        running = [self.x(i) for i in (3, 4)]
        running = [one if one.numel() == channels else torch.zeros(channels) for one in running]
        if x.shape[0]:
            rstd = (var + self.epsilon).rsqrt()
            unbiased = var * (count / (count - 1) if count > 1 else float("inf"))
            for one, found in zip(running, (mean, unbiased), strict=True):
                one.mul_(self.momentum).add_(found, alpha=1 - self.momentum)
            y = torch.batch_norm(x, scale, bias, mean, var, False, 0.0, self.epsilon, False)
        else:
            y = torch.empty_like(x)
        self.put(0, channels_last(y, self.order))
        for i, found in enumerate((*running, mean, rstd), 1):
            self.put(i, found)


@register_operator("InstanceNorm")
class InstanceNorm(FloatOperator):
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel.

    (X, scale, bias) -> Y and, if there are outputs for them, mean and 1 / deviation, both (N, C).
    Arguments: `epsilon` (1e-5), `order` (NCHW).
    Raises EnforceNotMet: scale or bias do not have one value per channel.
    Follows InstanceNormOp, caffe2/operators/instance_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order = self.image_order()
        epsilon = self.GetSingleArgument("epsilon", 1e-5)
        self.enforce(epsilon >= 0, "epsilon is not negative", epsilon)
        x = channels_first(self.x(0), order)
        scale, bias = self.x(1), self.x(2)
        enforce_per_channel(self, x, scale, bias)
        if not x.numel():
            for i, shape in enumerate((self.Input(0).shape, x.shape[:2], x.shape[:2])):
                if i < self.OutputSize():
                    self.out(i, shape).zero_()
            return
        var, mean = torch.var_mean(x.flatten(2), 2, correction=0)
        rstd = (var + epsilon).rsqrt()
        factor = rstd * scale.view(1, -1)
        offset = bias.view(1, -1) - mean * factor
        shape = (*factor.shape, *(1,) * (x.dim() - 2))
        y = torch.addcmul(offset.view(shape), x, factor.view(shape))
        for i, found in enumerate((channels_last(y, order), mean, rstd)[: self.OutputSize()]):
            self.put(i, found)


@register_operator("GroupNorm")
class GroupNorm(FloatOperator):
    """Y = scale * (X - mean) / sqrt(var + epsilon) + bias, moments per image and channel group.

    (X, scale, bias) -> Y and, if there are three outputs, mean and 1 / deviation, both (N, group).
    Arguments: `group` (32), `epsilon` (1e-5), `order` (NCHW).
    Follows GroupNormOp, caffe2/operators/group_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        order, group = self.image_order(), self.GetSingleArgument("group", 32)
        epsilon = self.GetSingleArgument("epsilon", 1e-5)
        x = channels_first(self.x(0), order)
        scale, bias = self.x(1).view(-1), self.x(2).view(-1)
        self.enforce(x.shape[1] % group == 0, "the number of channels is divisible by group", x)
        enforce_per_channel(self, x, scale, bias)
        if x.shape[0] == 0:
            self.out(0, self.Input(0).shape)
            return
        y, mean, rstd = torch.native_group_norm(
            x.contiguous(),
            scale,
            bias,
            x.shape[0],
            x.shape[1],
            x.shape[2:].numel(),
            group,
            epsilon,
        )
        self.put(0, channels_last(y, order))
        if self.OutputSize() == 3:
            self.put(1, mean)
            self.put(2, rstd)


@register_operator("LayerNorm")
@register_operator("C10LayerNorm_DontUseThisOpYet")
class LayerNorm(FloatOperator):
    """Y = (X - mean) / sqrt(var + epsilon), moments over the dimensions from `axis` (1) on.

    X -> Y, mean, deviation; the moments have sizes (M..., 1). With `elementwise_affine` inputs 1
    and 2 are scale and bias of each element.
    Arguments: `axis`, `epsilon` (1e-5), `elementwise_affine` (False).
    Follows LayerNormOp, caffe2/operators/layer_norm_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOATS)
        self.enforce(x.dim() >= 2, "X has two dimensions or more", x)
        axis, epsilon = self.axis(x, "axis", 1), self.GetSingleArgument("epsilon", 1e-5)
        rows = as_matrix(x, axis)
        scale = bias = None
        same = (self.Input(0).dtype(),)
        if self.GetSingleArgument("elementwise_affine", False):
            self.enforce(
                self.InputSize() == 3, "inputs 1 and 2 are scale and bias with elementwise_affine"
            )
            scale, bias = self.x(1, same).view(-1), self.x(2, same).view(-1)
            for values in (scale, bias):
                self.enforce(
                    values.numel() == rows.shape[1], "there is one value per element", values, x
                )
        moments = (*x.shape[:axis], 1)
        if rows.shape[0] == 0:
            for i, shape in enumerate((x.shape, moments, moments)):
                self.out(i, shape, self.Input(0).dtype())
            return
        if rows.shape[1] == 0:
            self.out(0, x.shape, self.Input(0).dtype())
            self.put(1, x.new_zeros(moments))
            self.put(2, x.new_full(moments, epsilon**0.5))
            return
        y, mean, rstd = torch.native_layer_norm(rows, rows.shape[1:], scale, bias, epsilon)
        self.put(0, y.view(x.shape))
        self.put(1, mean.view(moments))
        self.put(2, rstd.reciprocal_().view(moments))


@register_operator("RMSNorm")
class RMSNorm(FloatOperator):
    """Y = X / rms(X) * scale + bias, the root mean square from dimension `axis` (1) on.

    (X, scale, bias) -> Y, 1 / rms (M...).
    Arguments: `axis`, `eps` (0), added to the mean square.
    Follows RMSNormOp, caffe2/operators/rms_norm_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x = self.x(0, FLOATS)
        axis = self.axis(x, "axis", 1)
        rows = as_matrix(x, axis)
        same = (self.Input(0).dtype(),)
        scale, bias = self.x(1, same), self.x(2, same)
        for values in (scale, bias):
            self.enforce(
                values.numel() == rows.shape[1], "there is one value per element", values, x
            )
        mean = rows.square().mean(1, keepdim=True)
        rrms = (mean + self.GetSingleArgument("eps", 0.0)).rsqrt()
        y = torch.addcmul(bias.view(-1), rows * rrms, scale.view(-1))
        self.put(0, y.view(x.shape))
        self.put(1, rrms.view(x.shape[:axis]))


@register_operator("LRN")
class LRN(FloatOperator):
    """Y = X / (bias + alpha / size * sum of X^2 over the `size` nearest channels)^beta.

    X -> Y and, if there is a second output, the base of the power.
    Arguments: `size` (odd), `alpha`, `beta`, `bias` (1), `order` (NCHW).
    Follows LRNOp, caffe2/operators/local_response_normalization_op.cc, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        x, scale = self._scaled()
        self.put(0, channels_last(x * scale.pow(-self.beta), self.order))
        if self.OutputSize() == 2:
            self.put(1, channels_last(scale, self.order))

    def _scaled(self) -> tuple[Tensor, Tensor]:
        """Return X (N, C, ...) and the base of the power."""
        self.order, self.size = self.image_order(), self.GetSingleArgument("size", 0)
        self.alpha = self.GetSingleArgument("alpha", 0.0)
        self.beta = self.GetSingleArgument("beta", 0.0)
        bias = self.GetSingleArgument("bias", 1.0)
        self.enforce(self.size > 0, "size is positive", self.size)
        x = channels_first(self.x(0), self.order)
        self.enforce(x.dim() == 4, "X has 4 dimensions", x)
        return x, self.summed(x * x).mul_(self.alpha / self.size).add_(bias)

    def summed(self, values: Tensor) -> Tensor:
        """Return the sum over the nearest channels of each channel (N, C, ...)."""
        if not values.numel():
            return values
        before = (self.size - 1) // 2
        n, c, h, w = values.shape
        padded = functional.pad(values, (0, 0, 0, 0, before, self.size - 1 - before))
        flat = padded.reshape(n, 1, c + self.size - 1, h * w)
        sums: Tensor = functional.avg_pool2d(flat, (self.size, 1), 1, divisor_override=1)
        return sums.view(n, c, h, w)


@register_operator("LRNGradient")
class LRNGradient(LRN):
    """(X, Y, dY) -> dX, the gradient of LRN; the same arguments."""

    def RunOnDevice(self) -> None:
        x, scale = self._scaled()
        y, dy = channels_first(self.x(1), self.order), channels_first(self.x(2), self.order)
        around = self.summed(y * dy / scale).mul_(-2 * self.alpha * self.beta / self.size)
        dx = torch.addcmul(dy * scale.pow(-self.beta), x, around)
        self.put(0, channels_last(dx, self.order))
