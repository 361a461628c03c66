# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.gradient_checker``: gradients against differences of results.

Follows caffe2/python/gradient_checker.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core
>>> from bridge.caffe2.gradient_checker import GradientChecker
>>> op = core.CreateOperator("Relu", "x", "y")
>>> x = np.array([1, -1, 2], np.float32)
>>> agree, gradient, estimate = GradientChecker(0.05, 0.05).CheckSimple(op, [x], 0, [0])
>>> agree, gradient
(True, array([1., 0., 2.], dtype=float32))
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

import numpy as np

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceNotMet
from bridge.caffe2 import core, net_drawer, workspace
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.device_checker import own_workspace

__all__ = ["GradientChecker", "NetGradientChecker", "getGradientForOp"]

# Of a large input, only so many elements at each end are checked, unless the environment says
# CAFFE2_FULL_GRAD_CHECK=1: each costs two runs of the operator.
_CHECKED_AT_EACH_END = 3


def getGradientForOp(op: Any) -> Any:
    """Return the gradient operators of an operator, and the gradients of its inputs.

    The gradient of the output ``y`` is named ``y_grad``.
    """
    return core.GradientRegistry.GetGradientForOp(op, [f"{name}_grad" for name in op.output])


def _estimated(x: Any, loss: Any, step: float, skip_the_middle: bool, known: Any = None) -> Any:
    """Return central differences of ``loss(x)`` for each element of `x`, an array like it.

    skip_the_middle: copy the values of elements that are not checked from `known`.
    """
    estimate = np.zeros_like(x)
    for place in range(x.size):
        middle = _CHECKED_AT_EACH_END <= place < x.size - _CHECKED_AT_EACH_END
        if skip_the_middle and middle:
            estimate.flat[place] = known.flat[place]
            continue
        losses = []
        for delta in (step, -step):
            moved = x.copy()
            moved.flat[place] += delta
            losses.append(loss(moved))
        estimate.flat[place] = (losses[0] - losses[1]) / step / 2
    return estimate


def _dense_gradient(gradient: Any, like: Any) -> Any:
    """Return the value of a gradient, a blob or a GradientSlice, with the shape of a blob."""
    if not isinstance(gradient, core.GradientSlice):
        return workspace.FetchBlob(gradient)
    inputs = [gradient.indices, gradient.values, like]
    workspace.RunOperatorOnce(core.CreateOperator("SparseToDense", inputs, "tmp_dense_grad"))
    return workspace.FetchBlob("tmp_dense_grad")


def _run_with_gradients(
    net: Any, outputs: Sequence[Any], with_gradients: Any, values: Any, checked: Sequence[Any]
) -> tuple[list[tuple[Any, Any]], dict[Any, Any], Any]:
    """Run a copy of a net with its gradient operators.

    Return the outputs with their values, the gradients by input, and the copy.
    """
    full = net.Clone(net.Name() + "_copy")
    gradients = full.AddGradientOperators(with_gradients)
    for name, value in (values or {}).items():
        workspace.FeedBlob(name, value)
    for name in checked:
        if name not in gradients:
            raise EnforceAssertionError(
                f"{name} has no gradient, cannot check net gradient.", "NetGradientChecker"
            )
        if not workspace.HasBlob(str(name)):
            raise EnforceAssertionError(
                f"Input {name} has no value; pass it in input_values.", "NetGradientChecker"
            )
    workspace.RunNetOnce(full)
    results = [(name, workspace.FetchBlob(name)) for name in outputs]
    return results, {name: _dense_gradient(gradients[name], name) for name in checked}, full


def _assert_close(a: Any, b: Any, threshold: float, message: str) -> tuple[Any, Any]:
    """Return the mean and the largest difference; raise an AssertionError if it is too large."""
    np.testing.assert_allclose(a, b, atol=threshold, rtol=threshold, err_msg=message)
    difference = np.abs(a - b).ravel()
    return np.mean(difference), max(difference)


def _draw(nets: Sequence[Any], prefix: str) -> None:
    for number, net in enumerate(nets):
        with open(f"{prefix}{number}{net.Name()}.png", "wb") as file:
            file.write(net_drawer.GetPydotGraph(net).create_png())


class NetGradientChecker:
    """Checks gradients of nets in the current workspace."""

    @staticmethod
    def CompareNets(
        nets: Sequence[Any],
        outputs: Sequence[Sequence[Any]],
        outputs_with_grad_ids: Sequence[int],
        inputs_with_grads: Sequence[Any],
        input_values: dict[Any, Any] | None = None,
        threshold: float = 0.0000001,
        print_net_images: bool = False,
    ) -> None:
        """Raise AssertionError unless nets give the same outputs and gradients as the first.

        outputs: of each net. outputs_with_grad_ids: positions of the outputs whose sum is
        differentiated. inputs_with_grads: the inputs whose gradients are compared. input_values:
        arrays by name, fed before each run. print_net_images: write each net to a file
        ``caffe2_net_*.png`` of the current folder.
        """
        if print_net_images:
            _draw(nets, "caffe2_net_forward_")
        runs = []
        for net, names in zip(nets, outputs, strict=False):
            with_gradients = [names[position] for position in outputs_with_grad_ids]
            runs.append(
                _run_with_gradients(net, names, with_gradients, input_values, inputs_with_grads)
            )
        if print_net_images:
            _draw([full for _, _, full in runs], "caffe2_net_")
        first_results, first_gradients, _ = runs[0]
        for results, gradients, _ in runs[1:]:
            for (name, a), (other, b) in zip(first_results, results, strict=False):
                _assert_close(a, b, threshold, f"The outputs {name} and {other} differ.")
            for name, b in gradients.items():
                message = f"Different gradients for input {name}"
                _assert_close(first_gradients[name], b, threshold, message)

    @staticmethod
    def Check(
        net: Any,
        outputs_with_grad: Sequence[Any],
        input_values: dict[Any, Any],
        input_to_check: Any,
        step_size: float = 0.0001,
        threshold: float = 0.05,
        print_net: bool = True,
    ) -> tuple[Any, Any]:
        """Hold the gradient of an input against differences of the sum of the outputs.

        Return the mean and the largest difference. Raise AssertionError if it is larger than
        `threshold`, relative and absolute; its text has the net if `print_net` is set.
        """
        _, gradients, full = _run_with_gradients(
            net, [], outputs_with_grad, input_values, [input_to_check]
        )

        def loss(value: Any) -> Any:
            workspace.FeedBlob(input_to_check, value)
            workspace.RunNetOnce(full)
            return sum(workspace.FetchBlob(name) for name in outputs_with_grad).sum()

        estimate = _estimated(input_values[input_to_check], loss, step_size, False)
        message = f"Error in gradient check for net_copy {net.Name()}"
        if print_net:
            message += f": {net.Proto()}"
        return _assert_close(gradients[input_to_check], estimate, threshold, message)


class GradientChecker:
    """Checks gradient operators, in a workspace of its own.

    stepsize: the step of the differences. threshold: the relative and absolute error that is
    allowed. device_option: the device of the operators and, unless `input_device_options` names
    another, of the inputs. workspace_name: the workspace, which is emptied after each check; the
    current one is used as it is.
    """

    def __init__(
        self,
        stepsize: float,
        threshold: float,
        device_option: Any = None,
        workspace_name: str = "gradient_check",
        input_device_options: dict[str, Any] | None = None,
    ) -> None:
        self._stepsize = stepsize
        self._threshold = threshold
        self._device_option = device_option or caffe2_pb2().DeviceOption()
        self._workspace_name = workspace_name
        self._input_device_options = input_device_options or {}

    def GetLossAndGrad(
        self,
        op: Any,
        grad_ops: Sequence[Any],
        inputs: Sequence[Any],
        input_names: Sequence[str],
        input_to_check: int,
        grad_name: Any,
        outputs_with_grads: Sequence[int],
    ) -> tuple[Any, Any]:
        """Run an operator and its gradient operators; return the loss and its gradient.

        The loss is half the sum of squares of the outputs at `outputs_with_grads`, so that the
        gradient of each is the output itself.
        """
        for name, value in zip(input_names, inputs, strict=False):
            device = self._input_device_options.get(name, self._device_option)
            workspace.FeedBlob(name, value, device)
        workspace.RunOperatorOnce(op)
        loss = 0.0
        for position in outputs_with_grads:
            value = workspace.FetchBlob(op.output[position])
            loss += (value**2).sum()
            workspace.FeedBlob(op.output[position] + "_grad", value, self._device_option)
        workspace.RunOperatorsOnce(grad_ops)
        return loss / 2.0, self._fetched(grad_name, inputs[input_to_check])

    def _fetched(self, gradient: Any, x: Any) -> Any:
        """Return the value of a gradient; a GradientSlice becomes an array of the shape of `x`."""
        if not isinstance(gradient, core.GradientSlice):
            return workspace.FetchBlob(gradient)
        indices, values = (f"{blob}_cpu" for blob in gradient)
        workspace.FeedBlob("zeros", np.zeros_like(x, dtype=np.float32))
        workspace.FeedBlob("ones", np.ones(1, np.float32))
        for blob, name in zip(gradient, (indices, values), strict=False):
            workspace.RunOperatorOnce(
                core.CreateOperator(
                    "EnsureCPUOutput", blob, name, device_option=self._device_option
                )
            )
        inputs = ["zeros", "ones", indices, values, "ones"]
        workspace.RunOperatorOnce(core.CreateOperator("ScatterWeightedSum", inputs, "zeros"))
        return workspace.FetchBlob("zeros")

    def CheckSimple(
        self,
        op: Any,
        inputs: Sequence[Any],
        input_to_check: int,
        outputs_with_grads: Sequence[int],
        grad_ops: Any = None,
        input_device_options: dict[str, Any] | None = None,
        ensure_outputs_are_inferred: bool = False,
    ) -> tuple[bool, Any, Any]:
        """Return whether the gradient of an input is right, the gradient, and its estimate.

        op: an OperatorDef; its device becomes the checker's. inputs: arrays. input_to_check,
        outputs_with_grads: positions. grad_ops: the gradient operators and the gradients of the
        inputs, if not Caffe2's. ensure_outputs_are_inferred: check the inferred shapes and
        types, too.

        Raises EnforceNotMet: the gradient has another shape than the input, or other shapes or
        types are inferred than computed.
        """
        op.device_option.CopyFrom(self._device_option)
        operators, gradients = getGradientForOp(op) if grad_ops is None else grad_ops
        name = gradients[input_to_check]
        devices = input_device_options or core.InferOpBlobDevicesAsDict(op)[0]

        def run(value: Any) -> tuple[Any, Any]:
            changed = [*inputs]
            changed[input_to_check] = value
            return self.GetLossAndGrad(
                op, operators, changed, op.input, input_to_check, name, outputs_with_grads
            )

        x = inputs[input_to_check]
        with self._workspace():
            for blob, value in zip(op.input, inputs, strict=False):
                workspace.FeedBlob(blob, value, devices.get(blob, self._device_option))
            _, gradient = run(x)
            if gradient.shape != x.shape:
                raise EnforceNotMet(
                    f"Mismatched gradient shapes: estimated ({x.shape}), grad ({gradient.shape})",
                    "GradientChecker.CheckSimple",
                )
            if ensure_outputs_are_inferred:
                _check_inferred(op, operators)
            skip = os.getenv("CAFFE2_FULL_GRAD_CHECK") != "1"
            estimate = _estimated(
                x, lambda value: run(value)[0], self._stepsize, skip, known=gradient
            )
        wrong = ~np.isclose(gradient, estimate, atol=self._threshold, rtol=self._threshold)
        if np.any(wrong):
            places = np.flatnonzero(wrong)
            print("Failed. [idx, grad, grad_estimate] are:")
            print(np.vstack([places, gradient.flat[places], estimate.flat[places]]).T)
        return not np.any(wrong), gradient, estimate

    def _workspace(self) -> AbstractContextManager[None]:
        """Return a block in the workspace of the checker."""
        is_current = self._workspace_name == workspace.CurrentWorkspace()
        return nullcontext() if is_current else own_workspace(self._workspace_name)


_TYPES = {"float64": "DOUBLE", "float32": "FLOAT", "int32": "INT32", "int64": "INT64"}


def _check_inferred(op: Any, operators: Sequence[Any]) -> None:
    """Raise EnforceNotMet unless the inferred outputs of `operators` are as computed."""
    net = caffe2_pb2().NetDef(op=[op, *operators])
    shapes, types = workspace.InferShapesAndTypes([net], nets_proto=True)
    for name in {name for operator in operators for name in operator.output}:
        if name not in shapes:
            raise EnforceNotMet(f"expected output {name} to be inferred", "GradientChecker")
        value = workspace.FetchBlob(name)
        kind = _TYPES.get(str(value.dtype)) if isinstance(value, np.ndarray) else None
        number = getattr(core.DataType, kind) if kind else f"unknown {type(value)}"
        for what, expected, found in (
            ("shape", list(np.shape(value)), list(shapes[name])),
            ("type", number, types[name]),
        ):
            if expected != found:
                raise EnforceNotMet(
                    f"Mismatched inferred {what}: want({expected}), got({found})",
                    "GradientChecker",
                )
