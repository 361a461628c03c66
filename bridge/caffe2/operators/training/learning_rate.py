# SPDX-License-Identifier: Apache-2.0
"""LearningRate: the learning rate of an iteration by one of Caffe2's policies.

A policy gives factors of the base rate by iteration. `get(name, default)` returns an argument of
the operator; inside a composite policy its name has a prefix. Follows learning_rate_functors.h and
learning_rate_op.h in caffe2/sgd, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from bridge.caffe2.execution.declaration import Arguments
from bridge.caffe2.execution.function_operator import Out, TargetDevice, operator
from bridge.caffe2.operators.base.checks import INT64, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel, takes_kernels
from bridge.caffe2.operators.training import step_kernels

GetArgument = Callable[[str, Any], Any]  # the value of an argument, or a default


def alter(n: int, get: GetArgument) -> float:
    """1 for `active_period`, 0 for `inactive_period`, repeatedly."""
    first = bool(get("active_first", True))
    periods = get("active_period", -1), get("inactive_period", -1)
    inside = n % max(sum(periods), 1) < periods[0 if first else 1]
    return float(inside == first)


def hill(n: int, get: GetArgument) -> float:
    """A linear warm-up, then inverse decay, at least `end_multiplier`."""
    warm = get("num_iter", 0)
    if n < warm:
        return linear_warmup(n, get)
    return float(max(get("end_multiplier", 0.0), inverse(n - warm, get)))


def slope(n: int, get: GetArgument) -> float:
    """`multiplier_1`, then linearly to `multiplier_2`."""
    start, end = get("num_iter_1", 0), get("num_iter_2", 0)
    first, last = get("multiplier_1", 0.0), get("multiplier_2", 0.0)
    if n < start:
        return float(first)
    reached = first + quotient((n - start) * (last - first), end - start)
    return float(reached if last < reached else last)  # `last` where nothing is reached, NaN


def power(base: float, exponent: float) -> float:
    """Return C's pow, which is NaN or infinity where Python's raises or is complex."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def quotient(a: float, b: float) -> float:
    """Return C's a / b, which is infinite or NaN where Python's raises."""
    if b:
        return a / b
    return math.copysign(math.inf, a) if a else math.nan


def poly(n: int, get: GetArgument) -> float:
    """(1 - n / max_iter)^power; Caffe2 has the default -1, as all negative ones, as 2^64 - 1."""
    return power(1 - quotient(n, get("max_iter", -1) % 2**64), get("power", 0.0))


def inverse(n: int, get: GetArgument) -> float:
    """(1 + gamma * n)^-power."""
    return power(1 + get("gamma", 0.0) * n, -get("power", 0.0))


def linear_warmup(n: int, get: GetArgument) -> float:
    """Linearly from `start_multiplier` to 1."""
    return line(n, get("start_multiplier", 0.0), get("num_iter", 0))


def line(n: int, first: float, steps: int) -> float:
    """Linearly from `first` to 1 in `steps` steps."""
    return 1.0 if n >= steps else float(first + (1 - first) * n / steps)


def piece_warmup(n: int, get: GetArgument) -> float:
    """`m1` before `n1`, `m2` before `n2`, then `m3`."""
    at = "m1" if n < get("n1", 0) else "m2" if n < get("n2", 0) else "m3"
    return float(get(at, 0.5))


def cyclical(n: int, get: GetArgument, prefix: str = "", size: str = "stepsize") -> float:
    """From 1 to `max_lr` / base rate and back in 2 * `stepsize` steps, shrinking by `decay`."""
    step = get(prefix + size, 0)
    cycle = n // (2 * step) + 1
    x = abs(n / step - 2 * cycle + 1)
    top = abs(get(f"{prefix}max_lr", 0.005)) / abs(get("/base_lr", 1.0))
    shrink = get(f"{prefix}decay", 1.0) ** (n // (2 * step))
    return float(1 + (top - 1) * max(0.0, 1 - x) * shrink)


def cosine(n: int, get: GetArgument, prefix: str = "") -> float:
    """From `max_lr` down to `min_lr` along a cosine, repeatedly."""
    period, longer = get(f"{prefix}period", 50), get(f"{prefix}t_mult", 1.0)
    if longer != 1:
        i = math.floor(math.log(1 - n / period * (1 - longer)) / math.log(longer))
        length = longer**i * period
        at = n - (1 - longer**i) / (1 - longer) * period
    else:
        i = n // period
        length, at = period, n - period * i
    shrink = get(f"{prefix}lr_shrink", 0.99) ** i
    low, high = get(f"{prefix}min_lr", 0.1) * shrink, get(f"{prefix}max_lr", 0.5) * shrink
    return float(low + 0.5 * (high - low) * (1 + math.cos(math.pi * at / length)))


def constant_then_linear(n: int, get: GetArgument) -> float:
    """`start_warmup_multiplier` for a while, then linearly to 1."""
    start, first = get("start_warmup_multiplier", 0.1), get("constant_warmup_num_iter", 10000000)
    if n < first:
        return float(start)
    return line(n - first, start, get("linear_warmup_num_iter", 10000000))


def after_warmup(n: int, get: GetArgument, then: Callable[[int, GetArgument], float]) -> float:
    """Constant, then linear, then another policy from its start."""
    warm = get("constant_warmup_num_iter", 10000000) + get("linear_warmup_num_iter", 10000000)
    return constant_then_linear(n, get) if n < warm else then(n - warm, get)


POLICIES: dict[str, Callable[[int, GetArgument], float]] = {
    "fixed": lambda n, get: 1.0,
    "alter": alter,
    "hill": hill,
    "slope": slope,
    "step": lambda n, get: power(get("gamma", 0.0), n // get("stepsize", 0)),
    "exp": lambda n, get: power(get("gamma", 0.0), n),
    "gate": lambda n, get: float(
        get("multiplier_2" if n >= get("num_iter", 0) else "multiplier_1", 1.0)
    ),
    "inv": inverse,
    "poly": poly,
    "linearWarmup": linear_warmup,
    "constantWarmup": lambda n, get: (
        1.0 if n >= get("num_iter", 0) else float(get("multiplier", 0.5))
    ),
    "pieceWarmup": piece_warmup,
    "cyclical": cyclical,
    "cosine": cosine,
    "constantThenLinearWarmup": constant_then_linear,
    "compositeCosine": lambda n, get: after_warmup(n, get, lambda m, s: cosine(m, s, "cosine_")),
    "compositeCyclical": lambda n, get: after_warmup(
        n, get, lambda m, s: cyclical(m, s, "cyclical_", "step_size")
    ),
}
"""Factors of the base rate at iteration n, by the names of the policies but `composite`."""


class Policy:
    """The policy of a learning rate.

    Arguments: `base_lr` and `policy`, which are required, and those of the policy.
    Raises EnforceNotMet: one of them is missing, or there is no such policy.
    """

    takes = (
        "float base_lr, str policy, bool active_first, int active_period, "
        "int constant_warmup_num_iter, float end_multiplier, float gamma, "
        "int inactive_period, int linear_warmup_num_iter, int max_iter, "
        "float multiplier, float multiplier_1, float multiplier_2, float n1, float n2, "
        "int num_iter, int num_iter_1, int num_iter_2, float power, "
        "float start_multiplier, float start_warmup_multiplier, int stepsize"
    )

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        require(arguments.has("base_lr"), "the argument base_lr is set")
        self._base: float = arguments.single("base_lr", 0.0)
        self._name = arguments.single("policy", "")
        self._check(self._name)
        self.is_fixed = self._name == "fixed"  # the same rate at all iterations
        if self._name == "composite":
            counts = arguments.repeated("sub_policy_num_iters", [0])
            require(bool(counts) and min(counts) > 0, "sub_policy_num_iters are positive", counts)
            for i in range(len(counts)):
                name = arguments.single(f"sub_policy_{i}_policy", "")
                require(name != "composite", "sub-policies are not composite")
                self._check(name)

    def _check(self, policy: str) -> None:
        known = policy in POLICIES or policy == "composite"
        require(known, f"policy is one of {', '.join([*POLICIES, 'composite'])}", policy)

    def rate(self, n: int) -> float:
        """Return the learning rate at iteration `n`."""
        if self.is_fixed:
            return self._base
        return float(self._base * self._factor(n))

    def _factor(self, n: int) -> float:
        if self._name != "composite":
            return self._of(self._name, "", n)
        counts = self._arguments.repeated("sub_policy_num_iters", [0])
        chosen, start = -1, 1
        for i, count in enumerate(counts):
            if n >= start:
                chosen = i
            start += count
        require(chosen >= 0, "composite policies begin at iteration 1", n)
        prefix = f"sub_policy_{chosen}_"
        scale = self._arguments.single(f"{prefix}lr_scale", 1.0)
        return float(self._of(self._arguments.single(f"{prefix}policy", ""), prefix, n) * scale)

    def _of(self, policy: str, prefix: str, n: int) -> float:
        def get(name: str, default: Any) -> Any:
            if name.startswith("/"):  # an argument of the operator, not of the policy
                return self._arguments.single(name[1:], default)
            return self._arguments.single(prefix + name, default)

        return POLICIES[policy](n, get)


@operator("LearningRate", types=INT64, gradient="none", on_host=("iteration",), effects=("errors",))
def learning_rate(
    iteration: Tensor, *, policy: Policy, device: TargetDevice = "cpu", out: Out = None
) -> Tensor:
    """The iteration (an int64) -> the learning rate, 0-d; see Policy."""
    require(iteration.numel() > 0, "there is an iteration", iteration)
    room = torch.empty((), dtype=torch.float32, device=device) if out is None else out
    if takes_kernels(room) and takes_kernels(iteration, dtype=torch.int64):
        return run_kernel(step_kernels.rate, room, iteration, iteration.numel(), policy.rate)
    n = 0 if policy.is_fixed else int(iteration.view(-1)[0])
    return room.fill_(policy.rate(n))
