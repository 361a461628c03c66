# SPDX-License-Identifier: Apache-2.0
"""ExtractPredictorNet: the part of a net that computes predictions, without training.

Follows ExtractPredictorNet, caffe2/python/model_helper.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.messages import as_message, check_text, copied
from bridge.caffe2.core.cloning import remap_input, rename
from bridge.caffe2.core.net import Net

_CALLER = "ExtractPredictorNet"


def ExtractPredictorNet(
    net_proto: Any,
    input_blobs: Iterable[Any],
    output_blobs: Iterable[Any],
    device: Any = None,
    renames: dict[str, str] | None = None,
    disabled_inputs: Iterable[Any] | None = None,
) -> tuple[Net, list[str]]:
    """Return a net of copies of the operators that compute `output_blobs` from `input_blobs`.

    These are the operators from the first that reads an input to the last that writes an output,
    except those that read an undefined blob: one that is neither an input, an external input nor an
    output of an operator before. The second result lists the external inputs of the new net that
    are not in `input_blobs`: its parameters, sorted.

    device: a DeviceOption for all operators. renames: new names of blobs. disabled_inputs: external
    inputs that count as undefined.

    Raises EnforceNotMet: no operator reads an input or writes an output (also a ValueError), or an
    operator is set to train (is_test=0).
    """
    source = as_message(net_proto, "NetDef", _CALLER)
    check_text(source, (source.name,), _CALLER)
    inputs, outputs = {str(one) for one in input_blobs}, {str(one) for one in output_blobs}
    names = {str(old): str(new) for old, new in (renames or {}).items()}
    external_inputs = set(source.external_input)
    known = (external_inputs | inputs) - {str(one) for one in disabled_inputs or ()}
    used, written = set(inputs), set(outputs)
    net = Net(source.name + "_predict")
    target = net.Proto()
    for operator in source.op[_range(source, inputs, outputs)]:
        if not known.issuperset(operator.input):
            continue
        new = copied(operator, "OperatorDef", _CALLER)
        if new.type == "RecurrentNetwork":
            used |= external_inputs.intersection(_rewrite_step_net(new, device, names))
        if device is not None:
            _place(new, device)
        _refuse_training(new)
        known.update(new.output)
        used |= external_inputs.intersection(new.input)
        written |= set(source.external_output).intersection(new.output)
        remap_input(new, names)
        rename(new.output, names)
        target.op.append(new)
    target.external_input.extend(names.get(one, one) for one in sorted(used))
    target.external_output.extend(names.get(one, one) for one in sorted(written))
    fed = {names.get(one, one) for one in inputs}
    return net, sorted(set(target.external_input) - fed)


def _range(net: Any, inputs: set[str], outputs: set[str]) -> slice:
    """Return the positions from the first reader of an input to the last writer of an output."""
    readers = [
        position
        for position, operator in enumerate(net.op)
        if inputs.intersection(operator.input) and operator.type != "StopGradient"
    ]
    writers = [
        position
        for position, operator in enumerate(net.op)
        if outputs.intersection(operator.output)
    ]
    if not readers:
        raise EnforceValueError(f"No ops with input={sorted(inputs)}", _CALLER)
    if not writers:
        raise EnforceValueError(f"No ops with output={sorted(outputs)}", _CALLER)
    return slice(readers[0], writers[-1] + 1)


def _rewrite_step_net(operator: Any, device: Any, names: dict[str, str]) -> list[str]:
    """Rename blobs and set the device in the step net; return its former external inputs."""
    found: list[str] = []
    for argument in operator.arg:
        if argument.name == "backward_step_net":
            argument.ClearField("n")
        elif argument.name == "step_net":
            found += argument.n.external_input
            for step in argument.n.op:
                rename(step.input, names)
                rename(step.output, names)
                if device is not None:
                    _place(step, device)
            rename(argument.n.external_input, names)
            rename(argument.n.external_output, names)
    return found


def _place(operator: Any, device: Any) -> None:
    operator.device_option.device_type = device.device_type
    operator.device_option.device_id = device.device_id


def _refuse_training(operator: Any) -> None:
    for argument in operator.arg:
        if argument.name == "is_test" and argument.i == 0:
            raise EnforceNotMet(
                f"Operator {operator.type} has is_test=0: this net is for training. Extract from a "
                "net for testing.",
                _CALLER,
                condition="is_test != 0",
            )
