# SPDX-License-Identifier: Apache-2.0
"""The base classes of optimizers: the learning rate, and the blobs that an optimizer keeps.

Follows caffe2/python/optimizer.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections import namedtuple

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions import scopes
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.iteration import BuildUniqueMutexIter
from bridge.caffe2.models.parameter_info import ParameterInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["AuxOptimizerParams", "Optimizer", "OptimizerWithStates", "constant"]

# The blobs that an optimizer keeps: those of one parameter, and those of several.
AuxOptimizerParams = namedtuple("AuxOptimizerParams", ["local", "shared"])

# Options of Caffe2's optimizers that are not implemented; only false values are accepted.
_UNSUPPORTED = (
    *("counter_halflife", "ema_options", "enableRAdam", "engine", "lars", "output_effective_lr"),
    *("output_effective_lr_and_update", "pruning_options", "rowWise", "sparse_dedup_aggregator"),
    *("swa_options", "use_lr_adaption", "weight_decay", "weight_scale"),
)


class Optimizer:
    """Adds the operators that update a parameter: ``optimizer(net, init_net, param, grad)``.

    `rate` is the learning rate, `policy` how it changes with the iterations. Further keyword
    arguments are those of the operator LearningRate, such as ``stepsize`` and ``gamma``.

    Raises EnforceNotMet, also an AssertionError: an option that is not supported.
    """

    _counts: ClassVar[dict[str, int]] = {}
    # The rate is negative where the operator adds the gradient, as WeightedSum does.
    sign = -1.0

    def __init__(self, rate: float, policy: str, **kwargs: Any) -> None:
        refused = sorted(name for name in _UNSUPPORTED if kwargs.pop(name, None))
        if refused:
            raise EnforceAssertionError(
                f"{type(self).__name__} has no option {', '.join(refused)} here.",
                type(self).__name__,
            )
        self.rate = rate
        self.policy = policy
        self.rate_arguments = kwargs
        self.multiplier: Any = None  # a blob, if the gradients are clipped
        self._aux = AuxOptimizerParams(local=[], shared=[])
        name = type(self).__name__
        self._number = self._counts.get(name, 0)
        self._counts[name] = self._number + 1

    def __call__(self, net: Any, param_init_net: Any, param: Any, grad: Any = None) -> None:
        """Add the operators that update `param`: a ParameterInfo, or a blob with `grad`.

        Raises EnforceNotMet, also an AssertionError: `param` has no gradient, or this optimizer
        does not support sparse gradients and it has one.
        """
        info = param if isinstance(param, ParameterInfo) else ParameterInfo(None, param, grad=grad)
        if info.grad is None:
            raise EnforceAssertionError(
                f"Parameter {info.name!r} has no gradient.",
                "Optimizer",
                condition="grad is not None",
            )
        self._run(net, param_init_net, info)

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        raise NotImplementedError

    def get_auxiliary_parameters(self) -> AuxOptimizerParams:
        """Return the blobs that the optimizer keeps besides the parameters."""
        return self._aux

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the learning rate by `factor`, for operators added from now on."""
        self.rate *= factor

    def make_unique_blob_name(self, base_str: str) -> str:
        """Return a name for a blob: the optimizer, `base_str` and the current device."""
        device = scopes.CurrentDeviceScope()
        on_gpu = device is not None and device.device_type == caffe2_pb2().CUDA
        where = f"gpu{device.device_id}" if on_gpu else "cpu"
        return f"{type(self).__name__}_{self._number}_{base_str}_{where}"

    def build_lr(self, net: Any, param_init_net: Any) -> Any:
        """Return the blob of the learning rate, after adding its operator if it is missing."""
        iteration = BuildUniqueMutexIter(param_init_net, net)
        name = self.make_unique_blob_name("lr")
        if net.BlobIsDefined(name):
            rate = net.GetBlobRef(name)
        else:
            rate = net.LearningRate(
                [iteration],
                name,
                base_lr=self.sign * self.rate,
                policy=self.policy,
                **self.rate_arguments,
            )
        if self.multiplier is None:
            return rate
        multiplier = net.CopyFromCPUInput(
            self.multiplier, self.make_unique_blob_name("lr_multiplier")
        )
        return net.Mul([rate, multiplier], self.make_unique_blob_name("scaled_lr"), broadcast=1)

    def state(self, init_net: Any, info: ParameterInfo, suffix: str, **fill: Any) -> Any:
        """Add a blob that is kept for a parameter; return a reference to it.

        fill: arguments of ConstantFill; without `shape` the blob has the shape of the parameter.
        """
        inputs = [] if "shape" in fill else [info.blob]
        name = BlobReference(f"{info.blob}_{suffix}")
        blob = init_net.ConstantFill(inputs, name, **(fill or {"value": 0.0}))
        self._aux.local.append(blob)
        return blob

    def one(self, init_net: Any) -> Any:
        """Add a blob that holds 1; return a reference to it."""
        blob = constant(init_net, "ONE", 1.0)
        self._aux.shared.append(blob)
        return blob


def constant(init_net: Any, name: str, value: float) -> Any:
    """Add a blob of one number, named after the current device; return a reference to it."""
    device = scopes.CurrentDeviceScope() or DeviceOption(0)
    full = f"{name}_{device.device_type}_{device.device_id}{device.node_name}"
    return init_net.ConstantFill([], full, shape=[1], value=value)


class OptimizerWithStates(Optimizer):
    """An optimizer that adds one operator, of the parameter, its states, gradient and rate."""

    op_type: str
    values_first = False  # the order of the inputs of a sparse gradient
    takes_iteration = False

    def __init__(
        self,
        rate: float,
        policy: str,
        states: dict[str, dict[str, Any]],
        arguments: dict[str, Any],
        **kwargs: Any,
    ) -> None:
        super().__init__(rate, policy, **kwargs)
        # For each state of a parameter: the suffix of its blob, and arguments of ConstantFill.
        self.states = states
        self.arguments = arguments
        self.sparse_arguments = arguments

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        if self.rate <= 0:
            return
        last = [self.build_lr(net, init_net)]
        updated = [info.blob]
        updated += [self.state(init_net, info, name, **fill) for name, fill in self.states.items()]
        if self.takes_iteration:
            iteration = BuildUniqueMutexIter(init_net, net)
            self._aux.shared.append(iteration)
            last.append(iteration)
        if isinstance(info.grad, GradientSlice):
            indices, values = info.grad
            gradient = [values, indices] if self.values_first else [indices, values]
            add, arguments = getattr(net, f"Sparse{self.op_type}"), self.sparse_arguments
        else:
            gradient, add, arguments = [info.grad], getattr(net, self.op_type), self.arguments
        add([*updated, *gradient, *last], updated, **arguments)
