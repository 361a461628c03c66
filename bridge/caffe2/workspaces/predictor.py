# SPDX-License-Identifier: Apache-2.0
"""Predictor: a net with its weights, in a workspace of its own."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceKeyError, EnforceTypeError, EnforceValueError
from bridge.caffe2.base.messages import as_message
from bridge.caffe2.base.names import listed, name_of
from bridge.caffe2.execution.blob_table import find_or_create
from bridge.caffe2.workspaces.named_blobs import feed_named, fetch_named
from bridge.caffe2.workspaces.named_nets import create_net, run_net_once
from bridge.caffe2.workspaces.workspace import Workspace


class Predictor:
    """A net in a workspace of its own: `init_net` runs at creation, `predict_net` at each `run`.

    Both are a ``core.Net`` or a NetDef, as a message of any class or as bytes.

    Raises EnforceNotMet: not a NetDef, a net that cannot be created, or `init_net` failed.
    Follows Predictor, caffe2/predictor/predictor.h, PyTorch 1.8.1.

    >>> import numpy as np
    >>> from bridge.caffe2 import core, workspace
    >>> init, predict = core.Net("init"), core.Net("predict")
    >>> w = init.ConstantFill([], "w", shape=[1], value=3.0)
    >>> y = predict.Mul(["x", w], "y")
    >>> predict.AddExternalOutput(y)
    >>> predictor = workspace.Predictor(init, predict)
    >>> predictor.run([np.array([2.0], np.float32)])
    [array([6.], dtype=float32)]
    """

    __slots__ = ("_inputs", "_net", "_outputs", "_workspace")

    def __init__(self, init_net: Any, predict_net: Any) -> None:
        caller = "Predictor"
        init = as_message(init_net, "NetDef", caller)
        predict = as_message(predict_net, "NetDef", caller)
        self._workspace = Workspace()
        run_net_once(self._workspace, init, caller)
        self._inputs = list(predict.external_input)
        self._outputs = list(predict.external_output)
        for name in self._inputs:
            find_or_create(self._workspace, name)
        self._net = create_net(self._workspace, predict, False, caller)

    def run(self, inputs: Any) -> list[Any]:
        """Run the net; return copies of its external outputs as NumPy arrays, in order.

        inputs: a list of values for the first external inputs, or a dict of values by name: NumPy
        arrays, or anything else that `FeedBlob` takes. Other inputs keep their last values.

        Raises EnforceNotMet: more inputs than the net has, an unknown name (also a KeyError), a
        value that cannot be fed, or an operator failed.
        """
        caller = "Predictor.run"
        if isinstance(inputs, dict):
            feeds = [(name_of(name, caller), value) for name, value in inputs.items()]
        elif isinstance(inputs, (list, tuple)):
            if len(inputs) > len(self._inputs):
                raise EnforceValueError(
                    f"There are {len(inputs)} inputs, and the net has {len(self._inputs)}.",
                    caller,
                    condition="len(inputs) <= len(external_input)",
                )
            feeds = list(zip(self._inputs, inputs, strict=False))
        else:
            raise EnforceTypeError(
                f"Inputs are a list or a dict, not {type(inputs).__name__}.", caller
            )
        for name, _ in feeds:
            if name not in self._workspace._blobs:
                raise EnforceKeyError(
                    f"The net has no blob {name!r}; its inputs are {listed(self._inputs)}.",
                    caller,
                )
        for name, value in feeds:
            feed_named(self._workspace, name, value, None, caller)
        self._net._run(caller)
        return [fetch_named(self._workspace, name, caller) for name in self._outputs]
