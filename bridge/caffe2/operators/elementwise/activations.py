# SPDX-License-Identifier: Apache-2.0
"""Activations: y = f(x) of one float32 tensor, elementwise.

Each function is a whole operator. It receives the operator (for its arguments), the input x and the
memory of the output y, which is that of x where the operator runs in place; so no function reads x
after it has written y.

The formulas are those of Caffe2's CPU operators in PyTorch 1.8.1, even where they lose precision.
"""

from __future__ import annotations

import math

from bridge.caffe2.operators.base.elementwise_function import elementwise
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import FLOATS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from torch import Tensor

__all__: list[str] = []


@elementwise("Relu", in_place=lambda y: y.relu_())
def relu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = max(x, 0)."""
    torch.clamp_min(x, 0, out=y)


@elementwise("ReluN")
def relu_n(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = min(max(x, 0), n); argument `n` (6)."""
    n = op.GetSingleArgument("n", 6.0)
    op.enforce(n > 0, "n is positive", n)
    torch.clamp(x, 0, n, out=y)


@elementwise("LeakyRelu")
def leaky_relu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x where x > 0, else alpha * x; argument `alpha` (0.01)."""
    torch.where(x > 0, x, x * op.GetSingleArgument("alpha", 0.01), out=y)


@elementwise("ThresholdedRelu")
def thresholded_relu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x where x > alpha, else 0; argument `alpha` (1)."""
    torch.where(x > op.GetSingleArgument("alpha", 1.0), x, x.new_zeros(()), out=y)


@elementwise("Elu")
def elu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x where x > 0, else alpha * (exp(x) - 1); argument `alpha` (1)."""
    below = torch.expm1(torch.clamp_max(x, 0)).mul_(op.GetSingleArgument("alpha", 1.0))
    torch.where(x > 0, x, below, out=y)


@elementwise("Selu")
def selu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = scale * x where x > 0, else scale * alpha * (exp(x) - 1); arguments `alpha`, `scale`."""
    alpha = op.GetSingleArgument("alpha", SELU_ALPHA)
    scale = op.GetSingleArgument("scale", SELU_SCALE)
    op.enforce(scale > 1, "scale is greater than 1", scale)
    below = torch.expm1(torch.clamp_max(x, 0)).mul_(alpha)
    torch.where(x > 0, x, below, out=y).mul_(scale)


@elementwise("Sigmoid")
def sigmoid(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = 1 / (1 + exp(-x))."""
    torch.sigmoid(x, out=y)


@elementwise("HardSigmoid")
def hard_sigmoid(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = alpha * x + beta, clamped to [0, 1]; arguments `alpha` (0.2) and `beta` (0.5)."""
    alpha, beta = op.GetSingleArgument("alpha", 0.2), op.GetSingleArgument("beta", 0.5)
    torch.mul(x, alpha, out=y).add_(beta).clamp_(0, 1)


@elementwise("Tanh")
def tanh(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = tanh(x)."""
    torch.tanh(x, out=y)


@elementwise("Softplus")
def softplus(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = log(exp(x) + 1): 0 for x below about -17, infinite above 88, as in Caffe2."""
    torch.exp(x, out=y).add_(1).log_()


@elementwise("Softsign")
def softsign(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x / (1 + |x|)."""
    torch.div(x, torch.abs(x).add_(1), out=y)


@elementwise("Swish")
def swish(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x / (1 + exp(-x))."""
    torch.mul(x, torch.sigmoid(x), out=y)


@elementwise("Mish", FLOATS)
def mish(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x * tanh(log(1 + exp(x)))."""
    torch.mul(x, torch.exp(x).log1p_().tanh_(), out=y)


@elementwise("Gelu")
def gelu(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = x * cdf(x) of the normal distribution; approximated by tanh if `fast_gelu` is set."""
    if op.GetSingleArgument("fast_gelu", False):
        inner = torch.addcmul(x, torch.pow(x, 3), torch.ones(()), value=GELU_CUBIC)
        torch.mul(x, inner.mul_(GELU_SLOPE).tanh_().add_(1).mul_(0.5), out=y)
    else:
        torch.mul(x, torch.erf(x * math.sqrt(0.5)).add_(1).mul_(0.5), out=y)


@elementwise("Logit")
def logit(op: FloatOperator, x: Tensor, y: Tensor) -> None:
    """y = log(x / (1 - x)), x clamped to [eps, 1 - eps]; argument `eps` (1e-6)."""
    eps = op.GetSingleArgument("eps", 1e-6)
    torch.clamp(x, eps, 1 - eps, out=y)
    torch.div(y, 1 - y, out=y).log_()


SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946
GELU_SLOPE = math.sqrt(2 / math.pi)  # in the approximation by tanh
GELU_CUBIC = 0.044715
