# SPDX-License-Identifier: Apache-2.0
"""RunnableNet: the operators of a net, created once and run in order."""

from __future__ import annotations

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet, EnforceValueError
from bridge.caffe2.base.device_option import device_of_option
from bridge.caffe2.base.messages import check_text
from bridge.caffe2.execution.blob_table import BlobTable, missing_from, remove_unused
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.observers import KINDS, ObservedRun, Observer
from bridge.caffe2.execution.operator import Operator, failure
from bridge.caffe2.execution.operator_core import run_all
from bridge.caffe2.execution.parallel import ParallelRun
from bridge.caffe2.execution.registry import create_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.execution.observers import NetRun

# Caffe2's types of nets: those that run the operators in the order of the NetDef, and those that
# run independent operators at once.
_IN_ORDER = {"", "simple", "simple_refcount", "async_simple", "rnn"}
_PARALLEL = {"dag", "prof_dag", "async_dag", "async_scheduling", "async_polling", "parallel"}
_COMPILED = "compiled"  # of the bridge's own
_TYPES = _IN_ORDER | _PARALLEL | {_COMPILED}


class RunnableNet:
    """The operators of a net, bound to the blobs that they read and write.

    Operators keep their attributes from run to run. Names of blobs are looked up once, when the
    net is created.

    Raises EnforceNotMet: an operator cannot be created (the error names it and its position in the
    net), an input that neither the table nor the net has, an external output that no operator
    writes, an unknown type of net. No blobs are created then.

    Follows NetBase and SimpleNet, caffe2/core/net.cc and net_simple.cc, PyTorch 1.8.1.
    """

    __slots__ = (
        "__weakref__",
        "_definitions",
        "_name",
        "_operators",
        "_run_by",
        "_table",
    )

    def __init__(self, message: Any, table: BlobTable, caller: str) -> None:
        check_text(
            message, (message.name, *message.external_input, *message.external_output), caller
        )
        self._name: str = message.name
        self._table = table
        self._definitions: list[Definition] = []
        self._operators: list[Operator] = []
        if message.type not in _TYPES:
            raise EnforceValueError(
                f"Net {self._name!r} is of type {message.type!r}; the types are "
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
            remove_unused(table._blobs, new)
            raise
        # Runs the operators in another way than one by one in order; None: `run_all` does.
        self._run_by: NetRun | None = None
        if message.type in _PARALLEL:
            workers = message.num_workers if message.num_workers > 0 else None
            parallel = ParallelRun(self._operators, self._definitions, workers)
            self._run_by = parallel if parallel.is_useful else None
        elif message.type == _COMPILED:
            from bridge.caffe2.execution.compiled import CompiledRun  # loads torch

            outputs = tuple(message.external_output)
            self._run_by = CompiledRun(self._operators, self._definitions, outputs, table)

    def _add(self, message: Any, option: Any, new: list[str], caller: str) -> None:
        definition = Definition(message, None, option, caller)
        try:
            new += missing_from(self._table, definition.outputs)
            operator = create_operator(definition, self._table, caller)
        except Exception as cause:
            raise self._failure(len(self._operators), definition, cause, caller) from cause
        self._definitions.append(definition)
        self._operators.append(operator)

    @property
    def name(self) -> str:
        """The name of the net."""
        return self._name

    def run(self) -> None:
        """Run the operators in order.

        Raises EnforceNotMet, from the error of the operator that failed: it names that operator and
        its position. Its outputs are unchanged; the operators before it have run.
        """
        self._run("Net.run")

    def cancel(self) -> None:
        """Make a run in another thread fail if one of its operators waits, as for a queue."""
        for operator in self._operators:
            operator.Cancel()

    def _run(self, caller: str) -> None:
        if not self._operators:  # `run_all` of none has no position to report
            return
        at = [0]
        try:
            if self._run_by is None:
                run_all(self._operators, at)
            else:
                self._run_by.run(at)
        except Exception as cause:
            raise self._failure(at[0], self._definitions[at[0]], cause, caller) from cause

    def add_observer(self, kind: str, caller: str) -> Observer:
        """Add an observer of a kind in `KINDS`, and return it.

        Raises EnforceNotMet, also a ValueError: there is no such kind.
        """
        if kind not in KINDS:
            known = ", ".join(KINDS)
            raise EnforceValueError(
                f"There is no kind of observer {kind!r}; those are {known}.",
                caller,
                condition="observer != nullptr",
            )
        if not isinstance(self._run_by, ObservedRun):
            self._run_by = ObservedRun(self._operators, self._run_by)
        observer = KINDS[kind](self._operators)
        self._run_by.observers.append(observer)
        return observer

    def remove_observer(self, observer: Observer) -> None:
        """Remove an observer, if it is one of this net."""
        run = self._run_by
        if isinstance(run, ObservedRun):
            run.observers[:] = [one for one in run.observers if one is not observer]
            if not run.observers:
                self._run_by = run.unobserved

    @property
    def observers(self) -> list[Observer]:
        """The observers of the net."""
        run = self._run_by
        return list(run.observers) if isinstance(run, ObservedRun) else []

    def _failure(
        self, position: int, definition: Definition, cause: Exception, caller: str
    ) -> EnforceNotMet:
        self._table._failed_position = position
        where = f", position {position} of net {self._name!r},"
        return failure(definition, cause, caller, where, self._table._blobs)

    def __repr__(self) -> str:
        return f"<Net {self._name!r} of {len(self._operators)} operators>"


def _check_names(message: Any, caller: str) -> None:
    """Raise EnforceNotMet if inputs or outputs contradict the net's own lists of them."""
    known = set(message.external_input)
    lists_inputs = bool(known)
    if not lists_inputs and not message.external_output:
        return
    for position, operator in enumerate(message.op):
        for name in operator.input:
            if lists_inputs and name not in known:
                raise EnforceNotMet(
                    f"Net {message.name!r} lists its external inputs, and {name!r}, an input of "
                    f"operator {operator.type!r} at position {position}, is neither one of them "
                    "nor an output of an earlier operator. List it, or list no inputs.",
                    caller,
                )
        known.update(operator.output)
    for name in message.external_output:
        if name not in known:
            raise EnforceNotMet(
                f"Net {message.name!r} lists {name!r} as an external output, and none of its "
                "operators writes it.",
                caller,
            )
