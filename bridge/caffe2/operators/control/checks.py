# SPDX-License-Identifier: Apache-2.0
"""Operators that check values, and operators that fail."""

from __future__ import annotations

import math
import os

import torch
from torch import Tensor

from bridge import c10
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.execution.function_operator import Out, operator
from bridge.caffe2.operators.base.checks import FLOATS, INTS, assert_traced, has_values, require
from bridge.caffe2.operators.base.cpu_kernels import run_kernel
from bridge.caffe2.operators.base.torch_operator import TorchOperator, procedure


@operator(
    "NanCheck",
    inplace="0>0",
    gradient="NanCheck g0 > 0",
    types={"x": (c10.float32,), "others": None},
    rearranges=(),
)
def nan_check(x: Tensor, *others: Tensor, out: Out = None) -> Tensor:
    """A copy of input 0. Raises EnforceNotMet: it has NaN or infinities."""
    if has_values(x):
        run_kernel(_finite, x)
    else:
        assert_traced(x, "no element is NaN or infinite", torch.isfinite)
    return x.clone() if out is None else out.copy_(x)


@operator("EnforceFinite", gradient="undefined", types=FLOATS, effects=("io",))
def enforce_finite(x: Tensor) -> None:
    """No output. Raises EnforceNotMet: an element of input 0 is NaN or infinite."""
    _finite(x)


def _finite(x: Tensor) -> Tensor:
    """Return X. Raises EnforceNotMet: an element is NaN or infinite."""
    # With such an element the sum is none either, and without one only if it overflows.
    if not math.isfinite(x.sum().item()):
        wrong = (~torch.isfinite(x)).reshape(-1).nonzero()
        if len(wrong):
            value = x.reshape(-1)[wrong[0]].item()
            raise EnforceNotMet(f"Element {int(wrong[0])} is {value}, not finite.")
    return x


@operator("Assert", types=(*INTS, c10.bool), effects=("io",))
def assert_all(x: Tensor, *, error_msg: str = "") -> None:
    """No output. Raises EnforceNotMet with `error_msg`: an element of input 0 is 0."""
    zero = (x == 0).reshape(-1)
    if bool(zero.any()):
        raise EnforceNotMet(
            f"Element {int(zero.nonzero()[0])} is 0. {error_msg}".rstrip(),
            condition="(bool)cmp_data[i]",
        )


@procedure("Fail", inputs="0", outputs="0", gradient="undefined")
def fail(op: TorchOperator) -> bool:
    """An operator that fails."""
    return False


@operator("ThrowException", gradient="undefined", effects=("io",))
def throw_exception(*, message: str = "Exception from ThrowExceptionOp") -> None:
    """Raise an error with the argument `message`."""
    raise EnforceNotMet(message)


@operator("ThrowChildThreadException", gradient="undefined", effects=("io",))
def throw_child_thread_exception() -> None:
    """Raise an error of another thread; Caffe2 ends the process instead."""
    raise EnforceNotMet("An exception was thrown in a child thread.")


@operator("LogFatal", gradient="undefined", effects=("io",))
def log_fatal() -> None:
    """Raise an error; Caffe2 logs one, and ends the process."""
    raise EnforceNotMet("LogFatal.")


@operator("Crash", gradient="undefined", effects=("io",))
def crash() -> None:
    """End the process by SIGABRT, for tests of a crash."""
    os.abort()


@procedure("FeedBlob", inputs="0", outputs="1", gradient="undefined")
def feed_string(op: TorchOperator) -> None:
    """Set the output to the string `value`."""
    value = op.GetSingleArgument("value")
    require(isinstance(value, (str, bytes)), "FeedBlob needs the argument value, a string.")
    op.OutputBlob(0).feed(value)
