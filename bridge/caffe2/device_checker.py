# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.device_checker``: whether devices compute the same.

Follows caffe2/python/device_checker.py, PyTorch 1.8.1.

>>> import numpy as np
>>> from bridge.caffe2 import core
>>> from bridge.caffe2.device_checker import DeviceChecker
>>> checker = DeviceChecker(1e-6, [core.DeviceOption(0), core.DeviceOption(0)])
>>> checker.CheckSimple(core.CreateOperator("Relu", "x", "y"), [np.ones(2, np.float32)], [0])
True
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from bridge.annotation import Any
from bridge.caffe2 import workspace
from bridge.caffe2.core import InferOpBlobDevicesAsDict

__all__ = ["DeviceChecker"]


@contextmanager
def own_workspace(name: str) -> Iterator[None]:
    """A block in the workspace of that name, which is empty afterwards."""
    with workspace.WorkspaceGuard(name):
        try:
            yield
        finally:
            workspace.ResetWorkspace()


class DeviceChecker:
    """Runs operators and nets on several devices, and compares the results.

    threshold: the relative and absolute difference that is allowed. device_options: the devices;
    the results of each are compared with the results of the first.
    """

    def __init__(self, threshold: float, device_options: Sequence[Any]) -> None:
        self._threshold = threshold
        self._device_options = device_options

    def CheckSimple(
        self,
        op: Any,
        inputs: Sequence[Any],
        outputs_to_check: Sequence[int],
        input_device_options: dict[str, Any] | None = None,
    ) -> bool:
        """Return whether the outputs of an operator agree; print those that do not.

        op: an OperatorDef, which stays as it is. inputs: arrays, in the order of its inputs.
        outputs_to_check: positions. input_device_options: the devices of inputs, by name; an input
        that it lacks is on the device of the operator.
        """
        operator = type(op)()
        operator.CopyFrom(op)
        names = [op.output[position] for position in outputs_to_check]
        results = []
        with own_workspace("_device_check_"):
            for option in self._device_options:
                operator.device_option.CopyFrom(option)
                devices = input_device_options or InferOpBlobDevicesAsDict(operator)[0]
                for name, value in zip(op.input, inputs, strict=False):
                    workspace.FeedBlob(name, np.array(value), devices.get(name, option))
                workspace.RunOperatorOnce(operator)
                results.append([workspace.FetchBlob(name) for name in names])
                workspace.ResetWorkspace()
        return self._agree(results, names)

    def CheckNet(
        self,
        net: Any,
        inputs: dict[str, Any] | None = None,
        blobs_to_check: Sequence[str] | None = None,
        ignore: Collection[str] | None = None,
    ) -> bool:
        """Return whether the blobs of a NetDef agree; print those that do not.

        inputs: arrays by name. blobs_to_check: None is all outputs of operators. ignore: names to
        leave out. The operators of `net` are on the last device afterwards.
        """
        if blobs_to_check is None:
            blobs_to_check = [name for op in net.op for name in op.output]
        names = [name for name in blobs_to_check if name not in (ignore or ())]
        results = []
        with own_workspace("_device_check_"):
            for option in self._device_options:
                for name, value in (inputs or {}).items():
                    workspace.FeedBlob(name, value, option)
                for op in net.op:
                    op.device_option.CopyFrom(option)
                workspace.RunNetOnce(net)
                results.append([workspace.FetchBlob(name) for name in names])
        return self._agree(results, names)

    def _agree(self, results: list[list[Any]], names: Sequence[str]) -> bool:
        """Compare the results of each device with the results of the first."""
        agree = True
        for position, found in enumerate(results[1:], 1):
            for name, x, y in zip(names, found, results[0], strict=False):
                if not np.allclose(x, y, atol=self._threshold, rtol=self._threshold):
                    agree = False
                    print(
                        f"Device option {position} and output {name}: the results differ by up to "
                        f"{np.max(np.abs(x - y))}:\n{x.ravel()}\n{y.ravel()}"
                    )
        return agree
