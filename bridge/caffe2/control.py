# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.control``: execution steps that loop and branch.

Each function returns an ExecutionStep for a plan. It runs nets or steps: one, several, or
a list. A condition is a blob that holds one bool, or a net whose last external output is one; the
net runs each time that the condition is needed. Follows caffe2/python/control.py, PyTorch 1.8.1.

>>> from bridge.caffe2 import control, core, workspace
>>> net = core.Net("count")
>>> init = core.Net("init")
>>> number = init.ConstantFill([], "number", shape=[], value=0.0)
>>> one = init.ConstantFill([], "one", shape=[], value=1.0)
>>> _ = net.Add([number, one], number)
>>> plan = core.Plan("loop")
>>> plan.AddStep(control.Do("begin", init))
>>> plan.AddStep(control.For("repeat", net, 5))
>>> workspace.RunPlan(plan)
True
>>> workspace.FetchBlob("number").item()
5.0
"""

from __future__ import annotations

import itertools
from _thread import RLock

from bridge.annotation import Any
from bridge.c10.errors import EnforceAssertionError, EnforceValueError
from bridge.caffe2.core import BlobReference, DataType, ExecutionStep, Net, scoped_execution_step

__all__ = [
    "BoolNet",
    "CombineConditions",
    "Do",
    "DoParallel",
    "DoUntil",
    "DoWhile",
    "For",
    "GetConditionBlobFromNet",
    "If",
    "IfNot",
    "MergeConditionNets",
    "NotNet",
    "Switch",
    "SwitchNot",
    "Until",
    "While",
]

_used_names: set[str] = set()
_numbers = itertools.count(1)
_naming = RLock()  # held from looking a name up to adding it


def _step_name(control: str, base: str) -> str:
    """Return a name for a step that no step of this module has."""
    name = f"{base}/{control}"
    with _naming:
        while name in _used_names:
            name = f"{base}/{control}_{next(_numbers)}"
        _used_names.add(name)
    return name


def _listed(given: Any) -> list[Any]:
    """Return the arguments of a function, several or one list, as a list."""
    if not given:
        raise EnforceValueError("input cannot be empty.", "control")
    if len(given) > 1:
        return list(given)
    return given[0] if isinstance(given[0], list) else [given[0]]


def _are_nets(nets_or_steps: list[Any]) -> bool:
    return all(isinstance(one, Net) for one in nets_or_steps)


def _prepended(nets_or_steps: Any, *nets: Net) -> list[Any]:
    """Return a step that runs `nets`, then `nets_or_steps`."""
    items = _listed((nets_or_steps,))
    return [*nets, *items] if _are_nets(items) else [Do("prepend", *nets), *items]


def _appended(nets_or_steps: Any, *nets: Net) -> list[Any]:
    """Return a step that runs `nets_or_steps`, then `nets`."""
    items = _listed((nets_or_steps,))
    return [*items, *nets] if _are_nets(items) else [*items, Do("append", *nets)]


def GetConditionBlobFromNet(condition_net: Net) -> BlobReference:
    """Return a reference to the condition of a net: its last external output.

    Raises EnforceNotMet, also an AssertionError: it has none.
    """
    outputs = condition_net.Proto().external_output
    if not outputs:
        raise EnforceAssertionError(
            f"Condition net {condition_net.Name()} must have at least one external output",
            "GetConditionBlobFromNet",
        )
    # A reference, not a str: operators would prefix a str with their name scope.
    return BlobReference(outputs[-1])


def _condition(blob_or_net: Any) -> Any:
    """Return the blob of a condition, and the nets that compute it."""
    if isinstance(blob_or_net, Net):
        return GetConditionBlobFromNet(blob_or_net), [blob_or_net]
    return blob_or_net, []


def BoolNet(*blobs_with_bool_value: Any) -> Net:
    """Return a net that sets conditions: ``BoolNet((blob, True), (other, False))``."""
    net = Net("bool_net")
    for blob, value in _listed(blobs_with_bool_value):
        filled = net.ConstantFill([], [blob], shape=[], value=value, dtype=DataType.BOOL)
        net.AddExternalOutput(filled)
    return net


def NotNet(condition_blob_or_net: Any) -> tuple[Net, BlobReference]:
    """Return a net that negates a condition, and the blob it writes.

    The condition's own net, if it is one, is not part of it.
    """
    net = Net("not_net")
    negated = net.Not(_condition(condition_blob_or_net)[0])
    net.AddExternalOutput(negated)
    return net, negated


def _copied(condition_blob: Any) -> tuple[Net, BlobReference]:
    """Return a net that copies a condition, and the copy."""
    net = Net("copy_condition_blob_net")
    copy = net.Copy(condition_blob)
    net.AddExternalOutput(copy)
    return net, copy


def _related(net: Net, blobs: list[Any], relation: str) -> None:
    """Add "And" or "Or" of all blobs to a net, as its external output."""
    last = blobs[0]
    for blob in blobs[1:]:
        last = getattr(net, relation)([last, blob])
    net.AddExternalOutput(last)


def MergeConditionNets(name: str, condition_nets: Any, relation: str) -> Any:
    """Return a net of the operators of several nets, whose condition is the relation of theirs.

    relation: "And" or "Or". One net, or a list of one, is returned unchanged; an empty list gives
    None. Raises EnforceNotMet, also an AssertionError: the nets have types or devices.
    """
    if not isinstance(condition_nets, list):
        return condition_nets
    if len(condition_nets) < 2:
        return condition_nets[0] if condition_nets else None
    merged = Net(name)
    proto = merged.Proto()
    for net in condition_nets:
        part = net.Proto()
        if part.device_option != proto.device_option or part.type != proto.type:
            raise EnforceAssertionError(
                f"Net {net.Name()} has a type or a device; its operators would lose them.",
                "MergeConditionNets",
            )
        proto.op.extend(part.op)
        proto.external_input.extend(part.external_input)
    _related(merged, [GetConditionBlobFromNet(net) for net in condition_nets], relation)
    for net in condition_nets:
        for key, values in net._attr_dict.items():
            merged._attr_dict[key] += values
    return merged


def CombineConditions(name: str, condition_nets: Any, relation: str) -> Net | None:
    """Return a net that relates the conditions of a list of nets, which run before it.

    relation: "And" or "Or". Raises EnforceNotMet, also a ValueError: `condition_nets` is not one.
    """
    if not condition_nets:
        return None
    if not isinstance(condition_nets, list):
        raise EnforceValueError("condition_nets must be a list of nets.", "CombineConditions")
    blobs = [GetConditionBlobFromNet(net) for net in condition_nets]
    if len(blobs) == 1:
        return _copied(blobs[0])[0]
    combined = Net(name)
    _related(combined, blobs, relation)
    return combined


def _step(control: str, name: str, nets_or_steps: Any, **arguments: Any) -> ExecutionStep:
    return scoped_execution_step(_step_name(control, name), nets_or_steps, **arguments)


def Do(name: str, *nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps in order, once."""
    items = _listed(nets_or_steps)
    if len(items) == 1 and isinstance(items[0], ExecutionStep):
        return items[0]
    return _step("Do", name, items)


def DoParallel(name: str, *nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps concurrently, until all are done."""
    items = _listed(nets_or_steps)
    if len(items) == 1 and isinstance(items[0], ExecutionStep):
        return items[0]
    return _step("DoParallel", name, items, concurrent_substeps=True)


def For(name: str, nets_or_steps: Any, iter_num: int) -> ExecutionStep:
    """Run nets or steps `iter_num` times."""
    init_net, count_net = Net("init-net"), Net("For-iter")
    counter = init_net.CreateCounter([], init_count=iter_num)
    done = count_net.CountDown([counter])
    body = _step("For-inner", name, _prepended(nets_or_steps, count_net), should_stop_blob=done)
    return Do(f"{name}/For", Do(f"{name}/For-init-net", init_net), body)


def _started(name: str, control: str, stop: Any, items: list[Any], **arguments: Any) -> Any:
    """Return the step that runs `items` until `stop` holds, which is set to False before."""
    inner = _step(f"{control}-inner", name, items, should_stop_blob=stop, **arguments)
    return Do(f"{name}/{control}", BoolNet((stop, False)), inner)


def _while_it_holds(control: str, name: str, condition: Any, body: Any, **arguments: Any) -> Any:
    """Return the step that computes a condition and runs `body` while it holds."""
    not_net, stop = NotNet(condition)
    items = _prepended(body, *_condition(condition)[1], not_net)
    if _are_nets(items):
        # A stop that still holds from a former run would end the loop after the first of the nets.
        return _started(name, control, stop, items, **arguments)
    return _step(control, name, items, should_stop_blob=stop, **arguments)


def While(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps while a condition holds."""
    step: ExecutionStep = _while_it_holds("While", name, condition_blob_or_net, nets_or_steps)
    return step


def Until(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps until a condition holds."""
    stop, nets = _condition(condition_blob_or_net)
    items = _prepended(nets_or_steps, *nets) if nets else nets_or_steps
    return _step("Until", name, items, should_stop_blob=BlobReference(str(stop)))


def DoWhile(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps once, then while a condition holds."""
    not_net, stop = NotNet(condition_blob_or_net)
    items = _appended(nets_or_steps, *_condition(condition_blob_or_net)[1], not_net)
    step: ExecutionStep = _started(name, "DoWhile", stop, items)
    return step


def DoUntil(name: str, condition_blob_or_net: Any, nets_or_steps: Any) -> ExecutionStep:
    """Run nets or steps once, then until a condition holds.

    With a blob that holds already, the loop ends after the first of the nets or steps.
    """
    stop, nets = _condition(condition_blob_or_net)
    if not nets:
        return _step("DoUntil", name, nets_or_steps, should_stop_blob=BlobReference(str(stop)))
    step: ExecutionStep = _started(name, "DoUntil", stop, _appended(nets_or_steps, *nets))
    return step


def _once_if(name: str, condition: Any, body: Any) -> ExecutionStep:
    step: ExecutionStep = _while_it_holds("_RunOnceIf", name, condition, body, only_once=True)
    return step


def _once_if_not(name: str, condition: Any, body: Any) -> ExecutionStep:
    stop, nets = _condition(condition)
    if not nets:
        copy_net, stop = _copied(condition)
        nets = [copy_net]
    items = _prepended(body, *nets)
    return _step("_RunOnceIfNot", name, items, should_stop_blob=stop, only_once=True)


def Switch(name: str, *conditions: Any) -> ExecutionStep:
    """Run the nets of each condition that holds: ``Switch(name, (condition, net), ...)``."""
    steps = [_once_if(f"{name}/Switch", one, body) for one, body in _listed(conditions)]
    return _step("Switch", name, steps)


def SwitchNot(name: str, *conditions: Any) -> ExecutionStep:
    """Run the nets of each condition that does not hold; see `Switch`."""
    steps = [_once_if_not(f"{name}/SwitchNot", one, body) for one, body in _listed(conditions)]
    return _step("SwitchNot", name, steps)


def If(
    name: str, condition_blob_or_net: Any, true_nets_or_steps: Any, false_nets_or_steps: Any = None
) -> ExecutionStep:
    """Run nets or steps if a condition holds, and others if it does not."""
    if not false_nets_or_steps:
        return _once_if(f"{name}/If", condition_blob_or_net, true_nets_or_steps)
    blob = _condition(condition_blob_or_net)[0]
    return Do(
        f"{name}/If",
        _once_if(f"{name}/If-true", condition_blob_or_net, true_nets_or_steps),
        _once_if_not(f"{name}/If-false", blob, false_nets_or_steps),
    )


def IfNot(
    name: str, condition_blob_or_net: Any, true_nets_or_steps: Any, false_nets_or_steps: Any = None
) -> ExecutionStep:
    """Run nets or steps if a condition does not hold, and others if it does."""
    if not false_nets_or_steps:
        return _once_if_not(f"{name}/IfNot", condition_blob_or_net, true_nets_or_steps)
    blob = _condition(condition_blob_or_net)[0]
    return Do(
        f"{name}/IfNot",
        _once_if_not(f"{name}/IfNot-true", condition_blob_or_net, true_nets_or_steps),
        _once_if(f"{name}/IfNot-false", blob, false_nets_or_steps),
    )
