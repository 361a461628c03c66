# SPDX-License-Identifier: Apache-2.0
"""What optimizers have in common: the learning rate, and blobs that they keep."""

from __future__ import annotations

from collections import namedtuple

from bridge.c10.errors import EnforceAssertionError
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions import scopes
from bridge.caffe2.definitions.blob_reference import BlobReference
from bridge.caffe2.definitions.create_operator import DeviceOption
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.models.parameter_info import ParameterInfo

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["AuxOptimizerParams", "Optimizer", "OptimizerWithStates", "constant"]

# Blobs that an optimizer keeps: of a parameter each, and of several.
AuxOptimizerParams = namedtuple("AuxOptimizerParams", ["local", "shared"])

_ITERATION = "optimizer_iteration"
_MUTEX = "iteration_mutex"
_NOT_HERE = (
    *("counter_halflife", "ema_options", "enableRAdam", "engine", "lars", "output_effective_lr"),
    *("output_effective_lr_and_update", "pruning_options", "rowWise", "sparse_dedup_aggregator"),
    *("swa_options", "use_lr_adaption", "weight_decay", "weight_scale"),
)


class Optimizer:
    """What trains a parameter: ``optimizer(net, init_net, param, grad)`` adds the operators.

    `rate` is the learning rate, `policy` how it changes with the iterations; further arguments are
    those of the operator LearningRate, as ``stepsize`` and ``gamma``.
    """

    _counts: ClassVar[dict[str, int]] = {}
    # The rate is negative where the operator adds the gradient, as WeightedSum does.
    sign = -1.0

    def __init__(self, rate: float, policy: str, **kwargs: Any) -> None:
        refused = sorted(name for name in _NOT_HERE if kwargs.pop(name, None))
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
        """Add the operators that train `param`, a ParameterInfo, or a blob with its gradient.

        Raises EnforceNotMet, also an AssertionError: there is no gradient, or one that is sparse,
        which this optimizer does not take.
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
        """Return the blobs that it keeps beside the parameters."""
        return self._aux

    def scale_learning_rate(self, factor: float) -> None:
        """Multiply the rate, of operators that are added from now on."""
        self.rate *= factor

    def make_unique_blob_name(self, base_str: str) -> str:
        """Name a blob after this optimizer and the device of the scope."""
        device = scopes.CurrentDeviceScope()
        on_gpu = device is not None and device.device_type == caffe2_pb2().CUDA
        where = f"gpu{device.device_id}" if on_gpu else "cpu"
        return f"{type(self).__name__}_{self._number}_{base_str}_{where}"

    def build_lr(self, net: Any, param_init_net: Any) -> Any:
        """Add what counts iterations and computes the rate, unless it is there; return the rate."""
        if not param_init_net.BlobIsDefined(_ITERATION):
            on_cpu = DeviceOption(0, extra_info=["device_type_override:cpu"])
            with scopes.DeviceScope(on_cpu):
                iteration = param_init_net.ConstantFill(
                    [], _ITERATION, shape=[1], value=0, dtype=caffe2_pb2().TensorProto.INT64
                )
                mutex = param_init_net.CreateMutex([], _MUTEX)
                net.AtomicIter([mutex, iteration], iteration)
        name = self.make_unique_blob_name("lr")
        if net.BlobIsDefined(name):
            rate = net.GetBlobRef(name)
        else:
            rate = net.LearningRate(
                [param_init_net.GetBlobRef(_ITERATION)],
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
        """Add a blob that is kept for a parameter, like it unless `shape` says otherwise."""
        inputs = [] if "shape" in fill else [info.blob]
        name = f"{info.blob}_{suffix}"
        made = init_net.ConstantFill(inputs, BlobReference(name), **(fill or {"value": 0.0}))
        self._aux.local.append(made)
        return made

    def one(self, init_net: Any) -> Any:
        """Add a blob that holds 1."""
        made = constant(init_net, "ONE", 1.0)
        self._aux.shared.append(made)
        return made


def constant(init_net: Any, name: str, value: float) -> Any:
    """Add a blob of one number, whose name says the device of the scope."""
    device = scopes.CurrentDeviceScope() or DeviceOption(0)
    full = f"{name}_{device.device_type}_{device.device_id}{device.node_name}"
    return init_net.ConstantFill([], full, shape=[1], value=value)


class OptimizerWithStates(Optimizer):
    """An optimizer that is one operator: the parameter, states, the gradient and the rate."""

    op_type: str
    values_first = False  # of a sparse gradient
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
        # What is kept for each parameter: the end of the blob's name, arguments of ConstantFill.
        self.states = states
        self.arguments = arguments
        self.sparse_arguments = arguments

    def _run(self, net: Any, init_net: Any, info: ParameterInfo) -> None:
        if self.rate <= 0:
            return
        rate = self.build_lr(net, init_net)
        kept = [info.blob]
        kept += [self.state(init_net, info, name, **fill) for name, fill in self.states.items()]
        behind = [rate]
        if self.takes_iteration:
            behind.append(init_net.GetBlobRef(_ITERATION))
            self._aux.shared.append(behind[1])
        if isinstance(info.grad, GradientSlice):
            indices, values = info.grad
            gradient = [values, indices] if self.values_first else [indices, values]
            add, arguments = getattr(net, f"Sparse{self.op_type}"), self.sparse_arguments
        else:
            gradient, add, arguments = [info.grad], getattr(net, self.op_type), self.arguments
        add([*kept, *gradient, *behind], kept, **arguments)
