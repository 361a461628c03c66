# SPDX-License-Identifier: Apache-2.0
"""The base class of optimizers: the learning rate, and the blobs that an optimizer keeps.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import copy
from collections import defaultdict, namedtuple

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.device_option import IsGPUDeviceType
from bridge.caffe2.definitions import scope
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.modeling.parameter_info import ParameterInfo
from bridge.caffe2.optimizer.learning_rates import BuildUniqueMutexIter
from bridge.caffe2.workspaces.shape_inference import InferShapesAndTypes

TYPE_CHECKING = False

# The blobs that an optimizer keeps: for one parameter, and for several.
AuxOptimizerParams = namedtuple("AuxOptimizerParams", ["local", "shared"])

# Engines of Adagrad that keep its sums of squares as float16.
FP16_ENGINES = ["SIMD_Q_FP16", "SIMD_Q_STOC_FP16", "SIMD_Q_STOC_MKL_FP16"]

# How many optimizers of each class there were; the numbers are part of the names of blobs.
instance_counts: defaultdict[str, int] = defaultdict(int)

_LARGEST_FLOAT32 = float.fromhex("0x1.fffffep+127")


class Optimizer:
    """Adds the operators that update a parameter: ``optimizer(net, init_net, param, grad)``.

    A subclass defines `_run`, which gets the parameter as a ParameterInfo with its gradient.
    """

    # The attribute that holds the learning rate.
    _rate_name: str | None = None

    if TYPE_CHECKING:  # the options of a class, see `__init__`

        def __getattr__(self, name: str) -> Any: ...

    def __init__(self, options: dict[str, Any] | None = None) -> None:
        """Make the arguments of a subclass's constructor, its ``locals()``, attributes.

        `kwargs`, further arguments of the operator LearningRate, is the attribute `init_kwargs`.
        """
        for name, value in (options or {}).items():
            if name not in ("self", "__class__"):
                setattr(self, "init_kwargs" if name == "kwargs" else name, value)
        self._aux_params = AuxOptimizerParams(local=[], shared=[])
        name = type(self).__name__
        self._instance_num = instance_counts[name]
        instance_counts[name] += 1
        # Blobs that the learning rate is multiplied by: for all parameters, and for the next one.
        self._lr_multiplier: Any = None
        self._local_lr_multiplier: Any = None
        self._local_lr_multiplier_on_gpu = False

    def __call__(self, net: Any, param_init_net: Any, param: Any, grad: Any = None) -> None:
        """Add the operators that update `param`: a ParameterInfo, or a blob with `grad`.

        Raises EnforceNotMet, also an AssertionError: `param` has no gradient, or this optimizer
        does not support sparse gradients and it has one.
        """
        if grad is not None:
            blob = BlobReference(param) if isinstance(param, str) else param
            param = ParameterInfo(None, blob, grad=grad)
        if not isinstance(param, ParameterInfo):
            raise EnforceAssertionError(
                f"Expected parameter to be of type ParameterInfo, got {param}", "Optimizer"
            )
        if param.grad is None:
            raise EnforceAssertionError(
                f"Parameter {param.name!r} has no gradient.",
                "Optimizer",
                condition="grad is not None",
            )
        self._run(net, param_init_net, param)

    def _run(self, net: Any, param_init_net: Any, param_info: ParameterInfo) -> None:
        raise NotImplementedError(f"{type(self).__name__} does not define _run.")

    @property
    def attributes(self) -> dict[str, Any]:
        """A copy of the attributes, without the number of this object."""
        return {
            name: copy.deepcopy(value)
            for name, value in vars(self).items()
            if name != "_instance_num"
        }

    def get_auxiliary_parameters(self) -> AuxOptimizerParams:
        """Return the blobs that the optimizer keeps besides the parameters."""
        return self._aux_params

    def scale_learning_rate(self, scale: float) -> None:
        """Multiply the learning rate by `scale`, for operators added from now on."""
        if self._rate_name is None:
            raise NotImplementedError(f"{type(self).__name__} does not define scale_learning_rate.")
        setattr(self, self._rate_name, getattr(self, self._rate_name) * scale)

    def get_cpu_blob_name(self, base_str: str, node_name: str = "") -> str:
        """Return the name of a blob on the CPU that belongs to this optimizer."""
        return f"{type(self).__name__}_{self._instance_num}_{base_str}{node_name}_cpu"

    def get_gpu_blob_name(self, base_str: str, gpu_id: int, node_name: str) -> str:
        """Return the name of a blob on a GPU that belongs to this optimizer."""
        return f"{type(self).__name__}_{self._instance_num}_{base_str}{node_name}_gpu{gpu_id}"

    def make_unique_blob_name(self, base_str: str) -> str:
        """Return a name for a blob: the optimizer, `base_str` and the current device."""
        device = scope.CurrentDeviceScope()
        if device is None:
            return self.get_cpu_blob_name(base_str)
        if IsGPUDeviceType(device.device_type):
            return self.get_gpu_blob_name(base_str, device.device_id, device.node_name)
        return self.get_cpu_blob_name(base_str, device.node_name)

    def _learning_rate(self, net: Any, init_net: Any, sign: float = 1) -> tuple[Any, Any]:
        """Do as `build_lr` with the options of this optimizer.

        sign: -1 for operators that subtract their update.
        """
        assert self._rate_name is not None
        rate = getattr(self, self._rate_name) * sign
        return self.build_lr(net, init_net, rate, policy=self.policy, **self.init_kwargs)

    def build_lr(
        self,
        net: Any,
        param_init_net: Any,
        base_learning_rate: float,
        learning_rate_blob: Any = None,
        policy: str = "fixed",
        iter_val: int = 0,
        **kwargs: Any,
    ) -> tuple[Any, Any]:
        """Add the operator LearningRate, unless there is its output; return that and the iteration.

        The blob holds -base_learning_rate, as operators add their updates; it is multiplied
        by the multipliers that are set. kwargs: arguments of LearningRate, such as `stepsize`.
        """
        name = learning_rate_blob or self.make_unique_blob_name("lr")
        iteration = BuildUniqueMutexIter(param_init_net, net, iter_val=iter_val)
        if net.BlobIsDefined(name):
            rate = net.GetBlobRef(name)
        else:
            rate = net.LearningRate(
                [iteration], name, base_lr=-base_learning_rate, policy=policy, **kwargs
            )
        if self._lr_multiplier is not None:
            rate = self._multiplied(net, rate, self._lr_multiplier, "", on_device=False)
        if self._local_lr_multiplier is not None:
            device = scope.CurrentDeviceScope()
            on_gpu = device is not None and IsGPUDeviceType(device.device_type)
            there = self._local_lr_multiplier_on_gpu or not on_gpu
            rate = self._multiplied(net, rate, self._local_lr_multiplier, "local_", on_device=there)
        return rate, iteration

    def _multiplied(self, net: Any, rate: Any, by: Any, prefix: str, on_device: bool) -> Any:
        if not on_device:
            by = net.CopyFromCPUInput(by, self.make_unique_blob_name(f"{prefix}lr_multiplier"))
        name = self.make_unique_blob_name(f"{prefix}scaled_lr")
        return net.Mul([rate, by], name, broadcast=1)

    def add_lr_multiplier(self, lr_multiplier: Any) -> None:
        """Set the blob that learning rates are multiplied by; None multiplies by nothing."""
        self._lr_multiplier = lr_multiplier

    def _add_local_lr_multiplier(self, local_lr_multiplier: Any, is_gpu_blob: bool = False) -> None:
        """Set a further blob that the learning rate is multiplied by."""
        self._local_lr_multiplier = local_lr_multiplier
        self._local_lr_multiplier_on_gpu = is_gpu_blob

    def _clear_local_lr_multiplier(self) -> None:
        self._add_local_lr_multiplier(None)

    @staticmethod
    def dedup(net: Any, sparse_dedup_aggregator: str | None, grad: Any) -> Any:
        """Add operators that aggregate the rows of a sparse gradient that are listed twice.

        sparse_dedup_aggregator: "sum", "mean", or None to return `grad` unchanged. Raises
        EnforceNotMet, also an AssertionError: `grad` is not a GradientSlice.
        """
        if not isinstance(grad, GradientSlice):
            raise EnforceAssertionError(
                f"Dedup only works for sparse gradient, got {grad}", "Optimizer.dedup"
            )
        if not sparse_dedup_aggregator:
            return grad
        return net.DeduplicateGradientSlices(grad, aggregator=sparse_dedup_aggregator)

    def create_lars_inputs(
        self, param_init_net: Any, weight_decay: float, trust: float, lr_max: float
    ) -> tuple[Any, Any, Any]:
        """Add the three inputs of the operator Lars that are numbers; return their blobs."""
        values = {"weight_decay": weight_decay, "trust": trust, "lr_max": lr_max}
        blobs = [
            param_init_net.ConstantFill([], name, shape=[1], value=value)
            for name, value in values.items()
        ]
        return blobs[0], blobs[1], blobs[2]

    def _scale_by_layer(
        self, net: Any, init_net: Any, info: ParameterInfo, offset: float | None
    ) -> None:
        """Multiply the next rate by the rate of LARS for this parameter, unless `offset` is None.

        Parameters with sparse gradients are left out. Raises EnforceNotMet, also an
        AssertionError: `offset` is negative.
        """
        self._clear_local_lr_multiplier()
        if offset is None or isinstance(info.grad, GradientSlice):
            return
        self._require(offset >= 0, f"Lars offset must be nonnegative, got {offset}")
        numbers = self.create_lars_inputs(init_net, 0.0, 1.0, _LARGEST_FLOAT32)
        rate = net.Lars(
            [info.blob, info.grad, *numbers],
            self.make_unique_blob_name(f"{info.blob}_lars"),
            offset=offset,
            lr_min=0.0,
        )
        device = scope.CurrentDeviceScope()
        self._add_local_lr_multiplier(
            rate, device is not None and IsGPUDeviceType(device.device_type)
        )

    def _require(self, holds: bool, text: str) -> None:
        if not holds:
            raise EnforceAssertionError(text, type(self).__name__)

    def _refuse_sparse(self, info: ParameterInfo, text: str) -> None:
        self._require(not isinstance(info.grad, GradientSlice), text)

    def _shape(self, init_net: Any, info: ParameterInfo) -> list[int]:
        """Return the shape of a parameter.

        Raises EnforceNotMet, also an AssertionError: it cannot be inferred.
        """
        shapes, _ = InferShapesAndTypes([init_net])
        self._require(
            str(info.blob) in shapes, f"The shape of parameter {info.name!r} cannot be inferred."
        )
        return shapes[str(info.blob)]


def constant(init_net: Any, name: str, value: float) -> Any:
    """Add a blob of one number, named after the current device; return a reference to it."""
    device = scope.CurrentDeviceScope() or DeviceOption(0)
    full = f"{name}_{device.device_type}_{device.device_id}{device.node_name}"
    return init_net.ConstantFill([], full, shape=[1], value=value)


def state_blob(init_net: Any, info: ParameterInfo, suffix: str, **fill: Any) -> Any:
    """Add a blob of the optimizer's state for a parameter, by default zeros of its shape.

    fill: arguments of ConstantFill. With `shape`, the shape of the parameter does not matter.
    Return a reference to the blob.
    """
    fill.setdefault("value", 0.0)
    inputs = [] if "shape" in fill else [info.blob]
    name = BlobReference(f"{info.blob}_{suffix}")
    return init_net.ConstantFill(inputs, name, **fill)


def effective_rate_blobs(blob: Any, rate: bool, update: bool) -> list[str]:
    """Return the names of the further outputs of an update: its effective rate, and the update."""
    names = [f"{blob}_effective_lr"] if rate or update else []
    return [*names, f"{blob}_update"] if update else names


def row_count_fill(init_net: Any, info: ParameterInfo) -> tuple[list[Any], dict[str, Any]]:
    """Return the inputs and the arguments of a fill with one element for each row of a parameter.

    If the shape of the parameter is not known, operators that find it out are added.
    """
    shapes, _ = InferShapesAndTypes([init_net])
    if str(info.blob) in shapes:
        return [], {"shape": [shapes[str(info.blob)][0]]}
    shape = init_net.Shape(info.blob, f"{info.blob}_shape")
    rows = init_net.Slice([shape], f"{shape}_numrows", starts=[0], ends=[1])
    return [rows], {"input_as_shape": 1}
