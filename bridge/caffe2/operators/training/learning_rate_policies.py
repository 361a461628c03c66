# SPDX-License-Identifier: Apache-2.0
"""The policies of LearningRate: factors of the base rate by iteration.

Follows caffe2/sgd/learning_rate_functors.h, PyTorch 1.8.1.
"""

from __future__ import annotations

import math
from collections.abc import Callable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Say = Callable[[str, Any], Any]  # the value of an argument, or a default

__all__: list[str] = []


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
