# SPDX-License-Identifier: Apache-2.0
"""What all learning rates of a model depend on: the iteration, clipping by norm, an outer factor.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Sequence

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.data_types import DataType
from bridge.caffe2.core.device_copies import InferBlobDevices
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.workspaces.feed_fetch import FeedBlob, FetchBlob

# The blob that all learning rates are multiplied by, of models with allow_lr_injection=True.
LEARNING_RATE_INJECTION = "lr_injection"


def devices_of_blobs(model: Any) -> dict[str, Any]:
    """Return the DeviceOption of each blob of a model that an operator reads or writes."""
    return {**InferBlobDevices(model.net), **InferBlobDevices(model.param_init_net)}


def get_param_device(
    param_name: str,
    grad: Any,
    param_to_device: dict[str, Any] | None = None,
    default_device: Any = None,
) -> Any:
    """Return the device of a parameter, or of its gradient, or `default_device`.

    param_to_device: DeviceOptions by blob name. Raises EnforceNotMet, also an AssertionError: it
    has neither, and there is no default.
    """
    devices = param_to_device or {}
    names = [param_name]
    names += [grad.values, grad.indices] if isinstance(grad, GradientSlice) else [grad]
    device = next((devices[str(name)] for name in names if str(name) in devices), default_device)
    if device is None:
        raise EnforceAssertionError(
            f"Cannot infer device for {param_name}: no op creates it", "get_param_device"
        )
    return device


def get_lr_injection() -> Any:
    """Return the factor of learning rates: an array of (1,).

    The optimizer was built with allow_lr_injection=True, and ``param_init_net`` has run.
    """
    return FetchBlob(LEARNING_RATE_INJECTION)


def set_lr_injection(lr_injection_value: float) -> None:
    """Set the factor of learning rates, if built with allow_lr_injection=True."""
    import numpy as np

    FeedBlob(LEARNING_RATE_INJECTION, np.array([float(lr_injection_value)], np.float32))


def injected_rate(model: Any, multiplier: Any) -> Any:
    """Return a multiplier of learning rates that `set_lr_injection` sets, times `multiplier`.

    multiplier: a blob, or None.
    """
    if model.net.BlobIsDefined(LEARNING_RATE_INJECTION):
        injected = LEARNING_RATE_INJECTION
    else:
        injected = model.param_init_net.ConstantFill(
            [], LEARNING_RATE_INJECTION, shape=[1], value=1.0
        )
    if multiplier is None:
        return injected
    return model.net.Mul([multiplier, injected], "lr_multiplier", broadcast=1)


def norm_ratio(
    model: Any,
    params: Sequence[Any],
    name_scope: str,
    param_to_device: dict[str, Any],
    max_gradient_norm: float,
) -> Any:
    """Add operators that compute ``limit / max(norm, limit)``; return a reference to the result.

    The norm is taken of the gradients of all `params`, ParameterInfos, together. name_scope: that
    of the blobs. param_to_device: the DeviceOptions of blobs.
    """
    net = model.net
    squares = []
    with scope.NameScope(name_scope):
        for number, info in enumerate(params):
            grad = info.grad.values if isinstance(info.grad, GradientSlice) else info.grad
            with scope.DeviceScope(get_param_device(str(info.blob), info.grad, param_to_device)):
                total = net.SumSqrElements(grad, f"grad_{number}_squared_sum")
                squares.append(net.EnsureCPUOutput(total))
        with scope.DeviceScope(DeviceOption(0)):
            squared_norm = net.Sum(squares, "grad_squared_full_sum")
            norm = net.Pow(squared_norm, "global_norm", exponent=0.5)
            clip = model.param_init_net.ConstantFill(
                [], "clip_norm", shape=[], value=float(max_gradient_norm)
            )
            largest = net.Max([norm, clip], "max_norm")
            return net.Div([clip, largest], "norm_ratio")


# The blobs that hold the number of iterations, and the mutex that guards it.
OPTIMIZER_ITERATION_NAME = "optimizer_iteration"
ITERATION_MUTEX_NAME = "iteration_mutex"


def BuildUniqueMutexIter(
    init_net: Any, net: Any, iter: Any = None, iter_mutex: Any = None, iter_val: int = 0
) -> Any:
    """Return a reference to the blob that counts iterations, after adding it if it is missing.

    `init_net` then creates the count, an int64 on the CPU that starts at `iter_val`, and its mutex;
    `net` increments the count. iter, iter_mutex: other names for these two blobs.
    """
    count = OPTIMIZER_ITERATION_NAME if iter is None else iter
    if init_net.BlobIsDefined(count):
        return init_net.GetBlobRef(count)
    with scope.DeviceScope(DeviceOption(0, extra_info=["device_type_override:cpu"])):
        blob = init_net.ConstantFill([], count, shape=[1], value=iter_val, dtype=DataType.INT64)
        mutex = init_net.CreateMutex([], [iter_mutex or ITERATION_MUTEX_NAME])
        net.AtomicIter([mutex, blob], [blob])
    return blob
