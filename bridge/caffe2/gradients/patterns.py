# SPDX-License-Identifier: Apache-2.0
"""What a row of `table` says, carried out.

A pattern is one or more operators, ``TYPE INPUTS > OUTPUTS``, a semicolon between. ``$`` in a type
is the type of the operator whose gradient it is; ``TYPE{NAME=VALUE,...}`` has arguments of its own.
An input is

- ``i0``, ``o0``, ``g0``: an input or output of the operator, the gradient of an output;
- ``d0``: the gradient of an input, which an operator before made;
- with ``?`` behind: only where the operator has as many inputs or outputs;
- with ``!`` behind: its value, so the operator may not have worked in place of it;
- ``i*``, ``o*``, ``g*``: all of them.

An output is the number of an input whose gradient it is, ``*`` for all of them, or ``0@1``: the
values of a sparse gradient whose indices are input 1. A ``+TEXT`` behind what is named names
another blob after it: ``_o0+_dims`` is ``_NAME_dims``.
"""

from __future__ import annotations

import functools
import re

from bridge.caffe2.gradients.gradient_slice import GradientSlice
from bridge.caffe2.gradients.maker import GradientMaker

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Operator = tuple[str, dict[str, Any], list[str], list[str]]

__all__ = ["carry_out"]

_BLOB = re.compile(r"(_?)([iogd])(\d+|\*)([?!]?)(?:\+(\w+))?")


def carry_out(pattern: str, maker: GradientMaker) -> None:
    """Add the operators of a pattern. Raises EnforceNotMet: a blob that they need is not there."""
    for op_type, arguments, inputs, outputs in _parsed(pattern):
        maker.add(
            op_type.replace("$", maker.op.type),
            [name for word in inputs for name in _named(word, maker)],
            [name for word in outputs for name in _made(word, maker)],
            arguments,
        )


@functools.cache
def _parsed(pattern: str) -> tuple[Operator, ...]:
    return tuple(_operator(text) for text in pattern.split(";"))


def _operator(text: str) -> Operator:
    words, _, outputs = text.partition(">")
    head, *inputs = words.split()
    op_type, _, said = head.rstrip("}").partition("{")
    arguments: dict[str, Any] = {}
    for pair in said.split(",") if said else ():
        name, _, value = pair.partition("=")
        arguments[name] = float(value) if "." in value else int(value)
    return op_type, arguments, inputs, outputs.split()


def _named(word: str, maker: GradientMaker) -> Iterator[str]:
    """Return the blobs that an input of a pattern is."""
    match = _BLOB.fullmatch(word)
    assert match is not None, word
    before, kind, number, mark, behind = match.groups()
    have = len(maker.op.output if kind in "og" else maker.op.input)
    find = {"i": maker.I, "o": maker.O, "g": maker.GO, "d": maker.GI}[kind]
    for i in range(have) if number == "*" else [int(number)]:
        if i < have or mark != "?":
            name = find(i)
            maker.enforce(
                mark != "!" or name not in maker.op.output,
                f"needs the old value of {name!r}, which it writes over: it cannot be in place",
            )
            yield before + name + (behind or "")


def _made(word: str, maker: GradientMaker) -> Iterator[str]:
    """Return the blobs that an output of a pattern is."""
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
        yield from _named(word, maker)
