# SPDX-License-Identifier: Apache-2.0
"""The gradients of If, While and Do: operators of the same types, with the gradients of their nets.

Follows caffe2/python/control_ops_grad.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import itertools

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.definitions.scope import CurrentNameScope
from bridge.caffe2.definitions.ssa import reads_and_writes
from bridge.caffe2.gradients.backward_pass import IR

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    Result = tuple[list[Any], list[str | None]]

_INNER = "/_DO_OPERATOR_INNER_GRAD_"
_COPY = "/_DO_OPERATOR_INNER_GRAD_COPY_"
_numbers = itertools.count(1)


def _require(condition: Any, what: str, op: Any) -> None:
    if not condition:
        raise EnforceNotMet(
            f"The gradient of the {op.type} of {list(op.output)} needs {what}.",
            "GradientRegistry.GetGradientForOp",
        )


def _operator(op_type: str, inputs: Iterable[str], outputs: Iterable[str], **args: Any) -> Any:
    """Return an OperatorDef with these names, whatever scopes there are."""
    operator = caffe2_pb2().OperatorDef(type=op_type)
    operator.input.extend(inputs)
    operator.output.extend(outputs)
    operator.arg.extend(MakeArgument(name, value) for name, value in args.items())
    return operator


def _like(op: Any, inputs: Iterable[str], outputs: Iterable[str], **args: Any) -> Any:
    """Return a gradient operator of the type, device and engine of `op`."""
    operator = caffe2_pb2().OperatorDef()
    operator.CopyFrom(op)
    for field in ("input", "output", "arg", "control_input"):
        operator.ClearField(field)
    operator.input.extend(inputs)
    operator.output.extend(outputs)
    operator.arg.extend(MakeArgument(name, value) for name, value in args.items())
    if operator.name:
        operator.name += "_grad"
    operator.is_gradient_op = True
    return operator


def _net_of(op: Any, name: str) -> Any:
    for argument in op.arg:
        if argument.name == name and argument.HasField("n"):
            return argument.n
    return None


def _net_like(net: Any, operators: Iterable[Any], suffix: str = "_grad") -> Any:
    found = caffe2_pb2().NetDef()
    found.CopyFrom(net)
    for field in ("op", "external_input", "external_output"):
        found.ClearField(field)
    if found.name:
        found.name += suffix
    found.op.extend(operators)
    return found


def _distinct_gradients(op: Any, gradients: Sequence[Any]) -> tuple[list[Any], list[str | None]]:
    """Return copies that make gradients of several outputs distinct, and the gradients."""
    _require(len(gradients) == len(op.output), "a gradient, or None, for each output", op)
    copies: list[Any] = []
    found: list[str | None] = []
    known: dict[str, str] = {}
    for name, gradient in zip(op.output, gradients, strict=True):
        if not gradient:
            found.append(None)
            continue
        if name not in known:
            distinct = str(gradient)
            if distinct in known.values():
                distinct = f"{name}_{gradient}_DEDUP"
                copies.append(_operator("Copy", [str(gradient)], [distinct]))
            known[name] = distinct
        found.append(known[name])
    _require(known, "the gradient of an output", op)
    return copies, found


def _backward(net: Any, initial: dict[str, str]) -> tuple[list[Any], dict[str, str]]:
    """Return the gradient operators of a net, and the names of the gradients by blob."""
    operators, gradients = IR(net.op).GetBackwardPass(dict(initial))
    return operators, {str(name): str(one) for name, one in gradients.items()}


class _Branch:
    """The gradient of a net: the NetDef, gradients by blob, blobs read first, blobs written."""

    def __init__(self, net: Any, initial: dict[str, str]) -> None:
        operators, self.gradients = _backward(net, initial)
        self.reads, self.writes = reads_and_writes((one.input, one.output) for one in operators)
        self.net = _net_like(net, operators)


def do_gradient(op: Any, gradients: Sequence[Any]) -> Result:
    """Return the gradient of a Do: a Do that pops the workspace of the forward run."""
    net = _net_of(op, "net")
    _require(net is not None, "the argument net", op)
    values = {argument.name: argument for argument in op.arg}
    _require({"inner_blobs", "outer_blobs_idx"} <= values.keys(), "inner_blobs", op)
    inner_names = [name.decode() for name in values["inner_blobs"].strings]
    outer_names = [*op.input[:-1], *op.output[:-1]]
    outer_of = {
        inner: str(outer_names[place])
        for inner, place in zip(inner_names, values["outer_blobs_idx"].ints, strict=True)
    }
    inner_of = {outer: inner for inner, outer in outer_of.items()}
    _require(inner_of.keys() == {*outer_names}, "an inner name for each outer blob", op)
    operators, distinct = _distinct_gradients(op, gradients)
    initial = {
        inner_of[name]: (inner_of[name] + _INNER, gradient)
        for name, gradient in zip(op.output[:-1], distinct, strict=False)
        if gradient
    }
    outside = dict(initial.values())
    inner, found = _backward(net, {name: pair[0] for name, pair in initial.items()})
    if not inner:
        return [], []
    names: dict[str, str] = {}
    results: list[str | None] = []
    copies = []
    for name in op.input[:-1]:
        gradient = found.get(inner_of[name])
        results.append(None if gradient is None else f"{name}_grad")
        if gradient is not None:
            copy = inner_of[name] + _COPY
            copies.append(_operator("Copy", [gradient], [copy]))
            names[copy] = f"{name}_grad"
    outputs = [one for one in results if one is not None]
    inputs: list[str] = []
    written: set[str] = set()
    saved: dict[str, None] = {}
    for operator in inner:
        for name in operator.input:
            if name in written:
                continue
            outer = outer_of.get(name) or outside.get(name)
            if outer is None:
                saved[str(name)] = None
                continue
            if outer not in inputs:
                inputs.append(outer)
            names[str(name)] = outer
        written.update(operator.output)
    order = inputs + outputs
    stack = str(op.output[-1])
    operators.append(
        _like(
            op,
            [*inputs, stack],
            [*outputs, stack],
            net=_net_like(net, [*inner, *copies]),
            inner_blobs=list(names),
            outer_blobs_idx=[order.index(outer) for outer in names.values()],
            saved_fwd_blobs=list(saved),
        )
    )
    return operators, [*results, None]


def if_gradient(op: Any, gradients: Sequence[Any]) -> Result:
    """Return the gradient of an If: an If of the gradients of both nets.

    Gradients that only one of them computes are set to zeros by the other.
    """
    operators, distinct = _distinct_gradients(op, gradients)
    initial = {str(name): one for name, one in zip(op.output, distinct, strict=True) if one}
    net = _net_of(op, "then_net")
    _require(net is not None, "the argument then_net", op)
    then = _Branch(net, initial)
    found = dict(then.gradients)
    other = _net_of(op, "else_net")
    otherwise = _Branch(other, initial) if other is not None else None
    if otherwise is not None:
        for name, gradient in otherwise.gradients.items():
            # A branch that does not use a blob leaves it the gradient that was given.
            if found.get(name) in (None, initial.get(name)):
                found[name] = gradient
            else:
                same = gradient in (found[name], initial.get(name))
                _require(same, f"one gradient of {name!r}, not {found[name]!r}, {gradient!r}", op)
    nets = {"then_net": then.net}
    zeros = _zeros(initial, then, otherwise)
    if otherwise is not None:
        otherwise.net.op.extend(zeros)
        then.net.op.extend(_zeros(initial, otherwise, then))
        nets["else_net"] = otherwise.net
    elif zeros:
        nets["else_net"] = _net_like(then.net, zeros, "_auto_else_zero_blobs_")
    reads = dict.fromkeys([*then.reads, *(otherwise.reads if otherwise else ())])
    writes = dict.fromkeys([*then.writes, *(otherwise.writes if otherwise else ())])
    condition = str(op.input[0])
    inputs = [condition, *(name for name in reads if name != condition)]
    operators.append(_like(op, inputs, writes, **nets))
    return operators, [found.get(str(name)) for name in op.input]


def _zeros(initial: dict[str, str], branch: _Branch, other: _Branch | None) -> list[Any]:
    """Return operators that give gradients of `branch` a value where the other one runs."""
    operators = []
    for gradient in branch.writes:
        names = [name for name, one in branch.gradients.items() if one == gradient]
        if not names or (other is not None and gradient in other.writes):
            continue
        name = names[0]
        if name not in initial:
            operators.append(_operator("ConstantFill", [name], [gradient], value=0.0))
        elif initial[name] != gradient:
            operators.append(_operator("Copy", [initial[name]], [gradient]))
    return operators


def while_gradient(op: Any, gradients: Sequence[Any]) -> Result:
    """Return the gradient of a While whose net is one Do: a While as long as there are scopes."""
    operators, distinct = _distinct_gradients(op, gradients)
    initial = {str(name): one for name, one in zip(op.output, distinct, strict=True) if one}
    loop = _net_of(op, "loop_net")
    body = loop.op[0] if loop is not None and len(loop.op) == 1 else None
    _require(body is not None and body.type == "Do" and len(body.output), "one Do as its net", op)
    assert body is not None
    reuses = any(argument.name == "reuse_workspace" and argument.i for argument in body.arg)
    _require(not reuses, "a Do without reuse_workspace", op)
    branch = _Branch(loop, initial)
    number = next(_numbers)
    name = "gradient_loop_cond_net" + (f"_{number - 1}" if number > 1 else "")
    condition = f"{CurrentNameScope()}{name}/cond"
    has_scope = _operator("HasScope", [str(body.output[-1])], [condition])
    again = caffe2_pb2().NetDef(name=name)
    again.op.extend([has_scope])
    operators.append(has_scope)
    for blob, gradient in initial.items():
        computed = branch.gradients.get(blob, gradient)
        if computed != gradient:
            again.op.extend([_operator("Copy", [computed], [gradient])])
            operators.append(_operator("Copy", [gradient], [computed]))
    inputs = [condition, *branch.reads]
    operators.append(_like(op, inputs, branch.writes, loop_net=branch.net, cond_net=again))
    return operators, [branch.gradients.get(str(one)) for one in op.input]
