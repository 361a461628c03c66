# SPDX-License-Identifier: Apache-2.0
"""Iter and LearningRate: how far training is, and the rate there by one of Caffe2's policies.

The factors follow caffe2/sgd/learning_rate_functors.h, PyTorch 1.8.1. An argument of a policy is
read with a prefix where it is part of a composite one.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bridge import c10
from bridge.caffe2.blobs.objects import Mutex
from bridge.caffe2.execution.registry import register_operator
from bridge.caffe2.operators.base.float_operator import FloatOperator
from bridge.caffe2.operators.base.lazy_torch import torch
from bridge.caffe2.operators.base.torch_operator import INT64
from bridge.caffe2.operators.objects.stats import Stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Say = Callable[[str, Any], Any]  # the value of an argument, or a default

__all__ = ["AtomicIter", "Iter", "LearningRate"]

_LARGEST = 2**63 - 1


@register_operator("Iter")
class Iter(FloatOperator):
    """Add one to the int64 that the output holds, which is the input; 1 where there was none.

    Raises EnforceNotMet: it holds something else, a negative number, or the largest.
    Follows IterOp, caffe2/sgd/iter_op.h, PyTorch 1.8.1.
    """

    def RunOnDevice(self) -> None:
        if self.InputSize() == 0 and not self.OutputIsTensorType(0, "cpu"):
            self.out(0, (1,), c10.int64).fill_(1)
            return
        self.count()

    def count(self) -> None:
        """Add one to the output."""
        tensor = self.Output(0)
        self.enforce(tensor.IsType(c10.int64) and tensor.numel() == 1, "the output is one int64")
        value = int(tensor.data(c10.int64)[0])
        self.enforce(0 <= value < _LARGEST, "the count is not negative, nor the largest", value)
        self.out(0, tensor.sizes(), c10.int64).fill_(value + 1)


@register_operator("AtomicIter")
class AtomicIter(Iter):
    """(a mutex, the count) -> the count and one, in place.

    Counts its runs as atomic_iter/stats/<name of input 1>/num_iter.
    Follows AtomicIterOp, caffe2/sgd/iter_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._stat = Stat(f"atomic_iter/stats/{self._definition.inputs[1]}", "num_iter")

    def RunOnDevice(self) -> None:
        with self.Input(0, Mutex).lock:
            self.count()
        self._stat.put(1)


def alter(n: int, say: Say) -> float:
    """On for `active_period`, off for `inactive_period`, and again."""
    first = bool(say("active_first", True))
    periods = say("active_period", -1), say("inactive_period", -1)
    inside = n % max(sum(periods), 1) < periods[0 if first else 1]
    return float(inside == first)


def hill(n: int, say: Say) -> float:
    """A linear warm-up, then inverse decay, not below `end_multiplier`."""
    warm = say("num_iter", 0)
    if n < warm:
        return linear_warmup(n, say)
    return float(max(say("end_multiplier", 0.0), inverse(n - warm, say)))


def slope(n: int, say: Say) -> float:
    """`multiplier_1`, then along a line to `multiplier_2`."""
    start, end = say("num_iter_1", 0), say("num_iter_2", 0)
    first, last = say("multiplier_1", 0.0), say("multiplier_2", 0.0)
    if n < start:
        return float(first)
    return float(max(last, first + (n - start) * (last - first) / (end - start)))


def power(base: float, exponent: float) -> float:
    """Return what C's pow gives: NaN and infinity where Python's raises, or is complex."""
    try:
        return math.pow(base, exponent)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.inf if base == 0 else math.nan


def inverse(n: int, say: Say) -> float:
    """(1 + gamma * n)^-power."""
    return power(1 + say("gamma", 0.0) * n, -say("power", 0.0))


def linear_warmup(n: int, say: Say) -> float:
    """From `start_multiplier` along a line to 1."""
    return line(n, say("start_multiplier", 0.0), say("num_iter", 0))


def line(n: int, first: float, steps: int) -> float:
    """From `first` along a line to 1, in so many steps."""
    return 1.0 if n >= steps else float(first + (1 - first) * n / steps)


def piece_warmup(n: int, say: Say) -> float:
    """`m1` before `n1`, `m2` before `n2`, then `m3`."""
    at = "m1" if n < say("n1", 0) else "m2" if n < say("n2", 0) else "m3"
    return float(say(at, 0.5))


def cyclical(n: int, say: Say, prefix: str = "", size: str = "stepsize") -> float:
    """From 1 to `max_lr` over the base rate and back, in 2 * `stepsize`, shrinking by `decay`."""
    step = say(prefix + size, 0)
    cycle = n // (2 * step) + 1
    x = abs(n / step - 2 * cycle + 1)
    top = abs(say(f"{prefix}max_lr", 0.005)) / abs(say("/base_lr", 1.0))
    shrink = say(f"{prefix}decay", 1.0) ** (n // (2 * step))
    return float(1 + (top - 1) * max(0.0, 1 - x) * shrink)


def cosine(n: int, say: Say, prefix: str = "") -> float:
    """Down from `max_lr` to `min_lr` by a cosine, again and again."""
    period, longer = say(f"{prefix}period", 50), say(f"{prefix}t_mult", 1.0)
    if longer != 1:
        i = math.floor(math.log(1 - n / period * (1 - longer)) / math.log(longer))
        length = longer**i * period
        at = n - (1 - longer**i) / (1 - longer) * period
    else:
        i = n // period
        length, at = period, n - period * i
    shrink = say(f"{prefix}lr_shrink", 0.99) ** i
    low, high = say(f"{prefix}min_lr", 0.1) * shrink, say(f"{prefix}max_lr", 0.5) * shrink
    return float(low + 0.5 * (high - low) * (1 + math.cos(math.pi * at / length)))


def constant_then_linear(n: int, say: Say) -> float:
    """`start_warmup_multiplier` for a while, then along a line to 1."""
    start, first = say("start_warmup_multiplier", 0.1), say("constant_warmup_num_iter", 10000000)
    if n < first:
        return float(start)
    return line(n - first, start, say("linear_warmup_num_iter", 10000000))


def after_warmup(n: int, say: Say, then: Callable[[int, Say], float]) -> float:
    """Constant, then linear, then another policy from its start."""
    warm = say("constant_warmup_num_iter", 10000000) + say("linear_warmup_num_iter", 10000000)
    return constant_then_linear(n, say) if n < warm else then(n - warm, say)


POLICIES: dict[str, Callable[[int, Say], float]] = {
    "fixed": lambda n, say: 1.0,
    "alter": alter,
    "hill": hill,
    "slope": slope,
    "step": lambda n, say: power(say("gamma", 0.0), n // say("stepsize", 0)),
    "exp": lambda n, say: power(say("gamma", 0.0), n),
    "gate": lambda n, say: float(
        say("multiplier_2" if n >= say("num_iter", 0) else "multiplier_1", 1.0)
    ),
    "inv": inverse,
    "poly": lambda n, say: power(1 - n / say("max_iter", -1), say("power", 0.0)),
    "linearWarmup": linear_warmup,
    "constantWarmup": lambda n, say: (
        1.0 if n >= say("num_iter", 0) else float(say("multiplier", 0.5))
    ),
    "pieceWarmup": piece_warmup,
    "cyclical": cyclical,
    "cosine": cosine,
    "constantThenLinearWarmup": constant_then_linear,
    "compositeCosine": lambda n, say: after_warmup(n, say, lambda m, s: cosine(m, s, "cosine_")),
    "compositeCyclical": lambda n, say: after_warmup(
        n, say, lambda m, s: cyclical(m, s, "cyclical_", "step_size")
    ),
}
"""Factors of the base rate at iteration n, by the names of the policies but `composite`."""


@register_operator("LearningRate")
class LearningRate(FloatOperator):
    """The iteration (an int64) -> the learning rate there, of no dimensions.

    Arguments: `base_lr` and `policy`, which are to be said, and those of the policy.
    Raises EnforceNotMet: one of them is not said, or no policy has that name.
    Follows LearningRateOp, caffe2/sgd/learning_rate_op.h, PyTorch 1.8.1.
    """

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.enforce(self.HasArgument("base_lr"), "base_lr is said")
        self.base = self.GetSingleArgument("base_lr", 0.0)
        self.policy = self.GetSingleArgument("policy", "")
        self._check(self.policy)
        if self.policy == "composite":
            counts = self.GetRepeatedArgument("sub_policy_num_iters", [0])
            self.enforce(bool(counts) and min(counts) > 0, "sub-policies have iterations", counts)
            for i in range(len(counts)):
                name = self.GetSingleArgument(f"sub_policy_{i}_policy", "")
                self.enforce(name != "composite", "no part of a composite policy is one")
                self._check(name)

    def _check(self, policy: str) -> None:
        known = policy in POLICIES or policy == "composite"
        self.enforce(known, f"policy is one of {', '.join([*POLICIES, 'composite'])}", policy)

    def RunOnDevice(self) -> None:
        n = int(self.x(0, INT64).view(-1)[0])
        self.put(0, torch.tensor(self.base * self._factor(n), dtype=torch.float32))

    def _factor(self, n: int) -> float:
        if self.policy != "composite":
            return self._of(self.policy, "", n)
        counts = self.GetRepeatedArgument("sub_policy_num_iters", [0])
        chosen, start = -1, 1
        for i, count in enumerate(counts):
            if n >= start:
                chosen = i
            start += count
        self.enforce(chosen >= 0, "composite policies begin at iteration 1", n)
        prefix = f"sub_policy_{chosen}_"
        scale = self.GetSingleArgument(f"{prefix}lr_scale", 1.0)
        return float(self._of(self.GetSingleArgument(f"{prefix}policy", ""), prefix, n) * scale)

    def _of(self, policy: str, prefix: str, n: int) -> float:
        def say(name: str, default: Any) -> Any:
            if name.startswith("/"):  # the operator's own, not the policy's
                return self.GetSingleArgument(name[1:], default)
            return self.GetSingleArgument(prefix + name, default)

        return POLICIES[policy](n, say)
