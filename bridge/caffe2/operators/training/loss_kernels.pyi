# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.

from torch import Tensor

def check_labels(labels: Tensor, n: int, d: int) -> Tensor: ...
def accuracy(y: Tensor, x: Tensor, labels: Tensor, n: int, d: int, top: int) -> Tensor: ...
def label_cross_entropy(
    y: Tensor, x: Tensor, labels: Tensor, n: int, d: int, least: float
) -> Tensor: ...
def cross_entropy(y: Tensor, x: Tensor, labels: Tensor, n: int, d: int, least: float) -> Tensor: ...
def label_cross_entropy_gradient(
    dx: Tensor, x: Tensor, labels: Tensor, dy: Tensor, n: int, d: int, least: float
) -> Tensor: ...
def sigmoid_cross_entropy(y: Tensor, x: Tensor, targets: Tensor, n: int, d: int) -> Tensor: ...
def sigmoid_cross_entropy_gradient(
    dx: Tensor, dy: Tensor, x: Tensor, targets: Tensor, n: int, d: int
) -> Tensor: ...
def softmax_loss(
    loss: Tensor,
    logs: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    n: int,
    d: int,
    scale: float,
    average_by_batch_size: bool,
) -> Tensor: ...
def softmax_and_loss(
    loss: Tensor,
    p: Tensor,
    x: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    n: int,
    d: int,
    scale: float,
    average_by_batch_size: bool,
) -> Tensor: ...
def softmax_loss_gradient(
    dx: Tensor,
    p: Tensor,
    labels: Tensor,
    weights: Tensor | None,
    dloss: Tensor,
    n: int,
    d: int,
    scale: float,
    average_by_batch_size: bool,
) -> Tensor: ...
