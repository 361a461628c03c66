# SPDX-License-Identifier: Apache-2.0
"""RunnableNet: the operators of a net, made once, run one after the other."""

from __future__ import annotations

from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.device_option import device_of_option
from bridge.caffe2.base.messages import check_text
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.operator import Operator, failure
from bridge.caffe2.execution.operator_core import run_all
from bridge.caffe2.execution.registry import class_for
from bridge.caffe2.workspaces.run_once import made_in
from bridge.caffe2.workspaces.workspace import Workspace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

__all__ = ["RunnableNet"]

# Caffe2's ways to run a net; here all of them run the operators in the order that the net has them.
_TYPES = {"", "simple", "simple_refcount", "dag", "prof_dag", "async_dag", "async_scheduling"}
_TYPES |= {"async_polling", "async_simple", "rnn", "parallel"}


class RunnableNet:
    """A net in a workspace: its operators, made, with the blobs they work on.

    What is made once is used by every run: state of operators is kept from run to run, and blobs
    are the ones of the names at the time when the net was made.

    Raises EnforceNotMet: an operator that cannot be made (the error says which, and where in the
    net it is), an input that neither the workspace nor the net has, an external output that
    nothing makes, an unknown type of net. No blobs are created then.

    Follows NetBase and SimpleNet, caffe2/core/net.cc and net_simple.cc, PyTorch 1.8.1.
    """

    __slots__ = ("__weakref__", "_definitions", "_name", "_operators", "_workspace")

    def __init__(self, message: Any, workspace: Workspace, caller: str) -> None:
        check_text(
            message, (message.name, *message.external_input, *message.external_output), caller
        )
        self._name: str = message.name
        self._workspace = workspace
        self._definitions: list[Definition] = []
        self._operators: list[Operator] = []
        if message.type not in _TYPES:
            raise EnforceValueError(
                f"Net {self._name!r} is of type {message.type!r}, which is none of "
                f"{', '.join(sorted(_TYPES - {''}))}.",
                caller,
            )
        _check_names(message, caller)
        option = message.device_option if message.HasField("device_option") else None
        if option is not None:
            device_of_option(option)
        new: list[str] = []
        try:
            for operator in message.op:
                self._add(operator, option, new, caller)
        except BaseException:
            for name in new:
                workspace._blobs.pop(name, None)
            raise

    def _add(self, message: Any, option: Any, new: list[str], caller: str) -> None:
        definition = Definition(message, None, option, caller)
        try:
            class_for(definition, caller)
            operator = made_in(definition, self._workspace, new)
        except Exception as cause:
            raise self._failure(len(self._operators), definition, cause, caller) from cause
        self._definitions.append(definition)
        self._operators.append(operator)

    @property
    def name(self) -> str:
        """The name of the net."""
        return self._name

    def run(self) -> None:
        """Run the operators in turn.

        Raises EnforceNotMet, from the error that was met: it names the operator and its position.
        Outputs of that operator are what they were; those before it have run.
        """
        self._run("Net.run")

    def _run(self, caller: str) -> None:
        if not self._operators:  # there is none that could be named
            return
        at = [0]
        try:
            run_all(self._operators, at)
        except Exception as cause:
            raise self._failure(at[0], self._definitions[at[0]], cause, caller) from cause

    def _failure(
        self, position: int, definition: Definition, cause: Exception, caller: str
    ) -> EnforceNotMet:
        self._workspace._failed_position = position
        where = f", position {position} of net {self._name!r},"
        return failure(definition, cause, caller, where)

    def __repr__(self) -> str:
        return f"<Net {self._name!r} of {len(self._operators)} operators>"


def _check_names(message: Any, caller: str) -> None:
    """Refuse inputs and outputs that contradict what the net says of itself."""
    known = set(message.external_input)
    says_inputs = bool(known)
    if not says_inputs and not message.external_output:
        return
    for position, operator in enumerate(message.op):
        for name in operator.input:
            if says_inputs and name not in known:
                raise EnforceNotMet(
                    f"Net {message.name!r} lists its external inputs, and {name!r}, an input of "
                    f"operator {operator.type!r} at position {position}, is neither one of them "
                    "nor made before. List it, or list none.",
                    caller,
                )
        known.update(operator.output)
    for name in message.external_output:
        if name not in known:
            raise EnforceNotMet(
                f"Net {message.name!r} lists {name!r} as external output, and no operator of it "
                "makes that.",
                caller,
            )
