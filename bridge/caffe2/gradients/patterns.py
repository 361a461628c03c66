# SPDX-License-Identifier: Apache-2.0
"""The gradients that operators declare: functions, or patterns, which are operators as text.

A pattern is one or more operators ``TYPE INPUTS > OUTPUTS``, separated by semicolons. ``$`` in a
type stands for the type of the operator whose gradient it is. ``TYPE{NAME=VALUE,...}`` has further
arguments. An input is

- ``i0``, ``o0``: an input or an output of the operator;
- ``g0``: the gradient of an output;
- ``d0``: the gradient of an input, which an earlier operator of the pattern computes;
- ``i*``, ``o*``, ``g*``: all of them.

An input followed by ``?`` is left out if the operator has fewer inputs or outputs. One followed by
``!`` must not have been overwritten: the operator cannot work in place of it.

An output is ``0``, the gradient of an input; ``*``, the gradients of all inputs; or ``0@1``, the
values of a sparse gradient whose indices are input 1. ``_o0+_dims`` is the blob ``_NAME_dims``,
where NAME is the name of ``o0``.

So ``"ReluGradient o0 g0 > 0"`` is a ReluGradient that reads the output and its gradient, and writes
the gradient of the input.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from functools import partial

from bridge.annotation import Any
from bridge.caffe2.definitions.schemas import gradient_of
from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Operator = tuple[str, dict[str, Any], list[str], list[str]]


_BLOB = re.compile(r"(_?)([iogd])(\d+|\*)([?!]?)(?:\+(\w+))?")


def add_pattern(pattern: str, maker: GradientMaker) -> None:
    """Add the operators of a pattern. Raises EnforceNotMet: a blob that they need is missing."""
    for op_type, arguments, inputs, outputs in _parsed(pattern):
        maker.add(
            op_type.replace("$", maker.op.type),
            [name for word in inputs for name in _input_names(word, maker)],
            [name for word in outputs for name in _output_names(word, maker)],
            arguments,
        )


def by_argument(
    name: str, default: int, if_true: str, if_false: str
) -> Callable[[GradientMaker], None]:
    """Return the gradient with one pattern if an argument is true, and another one if it is not."""

    def make(maker: GradientMaker) -> None:
        add_pattern(if_true if maker.argument(name, default) else if_false, maker)

    return make


@functools.cache
def _parsed(pattern: str) -> tuple[Operator, ...]:
    return tuple(_operator(text) for text in pattern.split(";"))


def _operator(text: str) -> Operator:
    words, _, outputs = text.partition(">")
    head, *inputs = words.split()
    op_type, _, own = head.rstrip("}").partition("{")
    arguments: dict[str, Any] = {}
    for pair in own.split(",") if own else ():
        name, _, value = pair.partition("=")
        arguments[name] = float(value) if "." in value else int(value)
    return op_type, arguments, inputs, outputs.split()


def _input_names(word: str, maker: GradientMaker) -> Iterator[str]:
    """Yield the names of the blobs that an input of a pattern stands for."""
    match = _BLOB.fullmatch(word)
    assert match is not None, word
    prefix, kind, number, mark, suffix = match.groups()
    have = len(maker.op.output if kind in "og" else maker.op.input)
    find = {"i": maker.I, "o": maker.O, "g": maker.GO, "d": maker.GI}[kind]
    for i in range(have) if number == "*" else [int(number)]:
        if i < have or mark != "?":
            name = find(i)
            maker.enforce(
                mark != "!" or name not in maker.op.output,
                f"needs the value of {name!r}, which it overwrites: it cannot work in place",
            )
            yield prefix + name + (suffix or "")


def _output_names(word: str, maker: GradientMaker) -> Iterator[str]:
    """Yield the names of the blobs that an output of a pattern stands for."""
    if word == "*":
        yield from map(maker.GI, range(len(maker.op.input)))
    elif "@" in word:
        i, _, indices = word.partition("@")
        values = maker.GI_slice(int(i)).values
        maker.set_gradient(int(i), GradientSlice(maker.I(int(indices)), values))
        yield values
    elif word.isdecimal():
        yield maker.GI(int(word))
    else:
        yield from _input_names(word, maker)


def declared_gradient(op_type: str) -> Callable[[GradientMaker], None] | None:
    """Return the gradient that is declared with an operator type, or None."""
    gradient = gradient_of(op_type)
    if isinstance(gradient, str):
        return partial(_by_text, gradient)
    code = getattr(gradient, "__code__", None)
    if code is not None and code.co_varnames[: code.co_argcount] == ("maker",):
        return gradient  # type: ignore[no-any-return]
    return None if gradient is None else partial(_by_function, gradient)


def _by_function(function: Callable[..., Any], maker: GradientMaker) -> None:
    operators, gradients = function(maker.op, maker.output_gradients)
    if operators is not None:
        several = operators if isinstance(operators, list) else [operators]
        maker.gradient_ops.extend(several)
    maker.input_gradients = list(gradients)


def _by_text(text: str, maker: GradientMaker) -> None:
    """Add the operators of a pattern; none for "none". Raises EnforceNotMet for a refusal."""
    if text in _REFUSALS:
        maker.enforce(False, _REFUSALS[text])
    elif text != "none":
        add_pattern(text, maker)


_REFUSALS = {
    "undefined": "is not defined; a StopGradient after the operator makes it unnecessary",
    "unimplemented": "is not implemented, in Caffe2 neither",
}
