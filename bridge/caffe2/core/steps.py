# SPDX-License-Identifier: Apache-2.0
"""ExecutionStep: nets or further steps that run repeatedly, the parts of a Plan.

Follows ExecutionStep, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

from collections.abc import Iterable

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import (
    EnforceAssertionError,
    EnforceKeyError,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.caffe2.base.messages import as_message, caffe2_pb2, set_fields
from bridge.caffe2.base.names import new_name
from bridge.caffe2.core.net import Net, get_net_name
from bridge.caffe2.definitions.blob_reference import BlobReference, ScopedName


def add_net(nets: dict[Any, Net | None], net: Any) -> bool:
    """Add a Net, or the name of one, to a dict of nets by name; return whether the name is new.

    A net that was added by name is replaced by the Net of that name. Raises EnforceNotMet, also an
    AssertionError: another Net has the name.
    """
    name, added = get_net_name(net), net if isinstance(net, Net) else None
    is_new = name not in nets
    known = nets.get(name)
    if known is not None and added is not None and added is not known:
        raise EnforceAssertionError(f"Different nets with same name: {name}", "add_net")
    nets[name] = known or added
    return is_new


class ExecutionStep:
    """A step under construction: nets, or further steps, that run in order, `num_iter` times.

    nets: a Net, its name, or a list of these. A step without a name gets a new one. A step can be
    changed until it is added to another step or to a plan.

    Raises EnforceNotMet: `nets` is neither a net nor a list (also a TypeError), or two nets have
    one name (also an AssertionError).

    >>> from bridge.caffe2 import core
    >>> step = core.ExecutionStep("train", core.Net("one_batch"), num_iter=10)
    >>> step.HasNets(), step.HasSubsteps(), step.Proto().num_iter
    (True, False, 10)
    """

    _step_names_used: ClassVar[set[str]] = set()

    def __init__(self, name: str | None, nets: Any = None, num_iter: int | None = None) -> None:
        self._step: Any = caffe2_pb2().ExecutionStep()
        caller = "ExecutionStep"
        set_fields(self._step, caller, name=name or ExecutionStep._get_next_step_name("step"))
        self._net_dict: dict[Any, Net | None] = {}
        self._is_used = False
        self._substeps: list[ExecutionStep] = []
        if nets is not None:
            if not isinstance(nets, (Net, Iterable)):
                raise EnforceTypeError(
                    f"nets must be a net or a list of nets, not {type(nets).__name__}.", caller
                )
            for net in [nets] if isinstance(nets, Net) else nets:
                if add_net(self._net_dict, net):
                    set_fields(self._step, caller, network=[get_net_name(net)])
        if num_iter is not None:
            set_fields(self._step, caller, num_iter=num_iter)

    @staticmethod
    def _get_next_step_name(basename: str) -> str:
        return new_name(basename, ExecutionStep._step_names_used)

    def Name(self) -> str:
        """Return the name of the step."""
        return str(self._step.name)

    def __str__(self) -> str:
        return self.Name()

    def Proto(self) -> Any:
        """Return the ExecutionStep message, not a copy; it may be changed."""
        return self._step

    def HasNets(self) -> bool:
        """Return whether the step runs nets."""
        return len(self._step.network) > 0

    def HasSubsteps(self) -> bool:
        """Return whether the step runs further steps."""
        return len(self._step.substep) > 0

    def Nets(self) -> list[Any]:
        """Return the nets of the step and of its substeps; None for a net added by name."""
        return list(self._net_dict.values())

    def Substeps(self) -> list[ExecutionStep]:
        """Return the list of substeps, not a copy."""
        return self._substeps

    def get_net(self, name: str) -> Any:
        """Return the net of that name.

        Raises EnforceNotMet, also a KeyError: the step has no such net.
        """
        if name not in self._net_dict:
            raise EnforceKeyError(
                f"Step {self.Name()!r} has no net {name!r}.", "ExecutionStep.get_net"
            )
        return self._net_dict[name]

    def _set(self, **fields: Any) -> None:
        set_fields(self._mutable(), "ExecutionStep", **fields)

    def _mutable(self) -> Any:
        """Return the message to change it. Raises EnforceNotMet: the step was added elsewhere."""
        if self._is_used:
            raise EnforceAssertionError(
                "Cannot mutate a step that has already been added to a plan/step.",
                "ExecutionStep",
            )
        return self._step

    def _refuse_if(self, mixed: bool) -> None:
        if mixed:
            raise EnforceAssertionError("Cannot have both network and substeps.", "ExecutionStep")

    def _notify_is_used(self) -> None:
        self._is_used = True

    def SetIter(self, num_iter: int) -> None:
        """Set the number of iterations.

        Like all setters it raises EnforceNotMet, also an AssertionError, if the step was added to
        another step or to a plan.
        """
        self._set(num_iter=num_iter)

    def SetCreateWorkspace(self, create_workspace: bool) -> None:
        """Set whether the step runs in a new child workspace."""
        self._set(create_workspace=create_workspace)

    def SetNumConcurrentInstances(self, num_concurrent_instances: int) -> None:
        """Set how many instances of each concurrent substep run at the same time."""
        self._set(num_concurrent_instances=num_concurrent_instances)

    def SetOnlyOnce(self, only_once: bool) -> None:
        """Set whether the step runs once, regardless of `should_stop_blob`."""
        self._set(only_once=only_once)

    def SetShouldStopBlob(self, should_stop_blob: Any) -> None:
        """Set the blob, one bool, that ends the step when it is True after a net or substep.

        Raises EnforceNotMet, also an AssertionError: `should_stop_blob` is not a BlobReference.
        """
        if not isinstance(should_stop_blob, BlobReference):
            raise EnforceAssertionError(
                f"expects BlobReference here, got {type(should_stop_blob).__name__}",
                "ExecutionStep.SetShouldStopBlob",
            )
        self._set(should_stop_blob=str(should_stop_blob))

    def SetConcurrentSubsteps(self, concurrent_substeps: bool) -> None:
        """Set whether substeps run concurrently."""
        self._refuse_if(self.HasNets())
        self._set(concurrent_substeps=concurrent_substeps)

    def RunEveryMillis(self, interval: int) -> None:
        """Set the step to run every `interval` ms while its siblings run, and once after them."""
        set_fields(self._step, "ExecutionStep", run_every_ms=interval)

    def SetReportNet(self, report_net: Any, report_interval: int) -> None:
        """Set a net that runs once after the step; superseded by `RunEveryMillis`.

        report_interval is required, as in Caffe2, and has no effect.
        """
        self._set(report_interval=report_interval, report_net=get_net_name(report_net))
        add_net(self._net_dict, report_net)

    def AddSubstep(self, substep: Any) -> ExecutionStep:
        """Add a copy of another step, unless it is empty; return this step.

        Raises EnforceNotMet: `substep` is not an ExecutionStep (also a TypeError); `substep` is
        this step or has another net of the same name, or this step has nets or was added elsewhere
        (also an AssertionError).
        """
        caller = "ExecutionStep.AddSubstep"
        message = self._mutable()
        self._refuse_if(self.HasNets())
        proto = as_message(substep, "ExecutionStep", caller)
        if isinstance(substep, ExecutionStep):
            if substep is self:
                raise EnforceAssertionError("A step cannot be a substep of itself.", caller)
            nets = dict(self._net_dict)
            for name, net in substep._net_dict.items():
                add_net(nets, name if net is None else net)
            substep._notify_is_used()
            if not substep.HasNets() and not substep.HasSubsteps():
                return self
            self._net_dict = nets
            self._substeps.append(substep)
        message.substep.add().CopyFrom(proto)
        return self

    def AddNet(self, net: Net) -> ExecutionStep:
        """Add a net; return this step.

        Raises EnforceNotMet, also an AssertionError: `net` is not a Net, another net has its name,
        or this step has substeps or was added elsewhere.
        """
        message = self._mutable()
        self._refuse_if(self.HasSubsteps())
        if not isinstance(net, Net):
            raise EnforceAssertionError(
                f"A Net is expected, not {type(net).__name__}.", "ExecutionStep.AddNet"
            )
        add_net(self._net_dict, net)
        message.network.append(net.Name())
        return self

    def get_all_attributes(self, name: str) -> list[Any]:
        """Return the attributes `name` of all nets; see ``Net.add_attribute``."""
        return [one for net in self.Nets() if net is not None for one in net.get_attributes(name)]

    @classmethod
    def create_from_proto(
        cls, step_proto: Any, net_obj_dict: dict[str, Net], net_proto_dict: dict[str, Any]
    ) -> ExecutionStep:
        """Return an ExecutionStep constructed from its message.

        net_obj_dict: nets by name; those that it lacks are constructed from `net_proto_dict`,
        NetDefs by name, and added. Raises EnforceNotMet, also an AssertionError: neither has a
        net of that name.
        """
        message = as_message(step_proto, "ExecutionStep", "ExecutionStep.create_from_proto")
        parts: list[Any] = [
            cls.create_from_proto(substep, net_obj_dict, net_proto_dict)
            for substep in message.substep
        ]
        for name in message.network:
            if name not in net_obj_dict:
                if name not in net_proto_dict:
                    raise EnforceAssertionError(
                        f"There is no net {name!r}.", "ExecutionStep.create_from_proto"
                    )
                net_obj_dict[name] = Net(net_proto_dict[name])
            parts.append(net_obj_dict[name])
        options = {
            field: getattr(message, field)
            for field in (
                "num_iter",
                "concurrent_substeps",
                "only_once",
                "num_concurrent_instances",
                "create_workspace",
                "run_every_ms",
            )
            if message.HasField(field)
        }
        if message.HasField("should_stop_blob"):
            options["should_stop_blob"] = BlobReference(message.should_stop_blob)
        return execution_step(message.name, parts, **options)


def add_nets_in_order(step: ExecutionStep, net_list: list[str]) -> None:
    """Append the names of the nets of a step to `net_list`, each once, in running order."""
    for substep in step.Substeps():
        add_nets_in_order(substep, net_list)
    message = step.Proto()
    for name in [*message.network, *filter(None, [message.report_net])]:
        if name not in net_list:
            net_list.append(name)


def to_execution_step(step_or_nets: Any, default_name: str | None = None) -> ExecutionStep:
    """Return an ExecutionStep of a net or a list of them; return an ExecutionStep unchanged.

    An object with ``get`` and ``_stop_blob``, as a NetBuilder, stands for the list that ``get()``
    returns and runs until the blob is True; one with ``to_task``, as a TaskGroup, for the step of
    that task. default_name: None is the attribute ``name``
    of the object, if it has one.
    """
    if isinstance(step_or_nets, ExecutionStep):
        return step_or_nets
    if hasattr(step_or_nets, "to_task"):
        made: ExecutionStep = step_or_nets.to_task().get_step()
        return made
    name = default_name or getattr(step_or_nets, "name", None)
    if hasattr(step_or_nets, "_stop_blob") and hasattr(step_or_nets, "get"):
        return execution_step(name, step_or_nets.get(), should_stop_blob=step_or_nets._stop_blob)
    return execution_step(name, step_or_nets)


def execution_step(
    default_name: str | None,
    steps_or_nets: Any,
    num_iter: int | None = None,
    report_net: Any = None,
    report_interval: int | None = None,
    concurrent_substeps: bool | None = None,
    should_stop_blob: Any = None,
    only_once: bool | None = None,
    num_concurrent_instances: int | None = None,
    create_workspace: bool | None = False,
    run_every_ms: int | None = None,
) -> ExecutionStep:
    """Return an ExecutionStep of a net, a step, a list of either, or of nothing if None.

    It runs until `should_stop_blob` is True if that is given, or else `num_iter` times, by default
    once. The methods of `ExecutionStep` describe the other options.

    Raises EnforceNotMet: both of these are given, or report_net without report_interval (also an
    AssertionError); `steps_or_nets` is none of these (also a ValueError).

    >>> from bridge.caffe2 import core
    >>> step = core.execution_step("epoch", [core.Net("epoch_a"), core.Net("epoch_b")], num_iter=2)
    >>> list(step.Proto().network), step.Proto().num_iter
    (['epoch_a', 'epoch_b'], 2)
    """
    if should_stop_blob is not None and num_iter is not None:
        raise EnforceAssertionError(
            "Cannot set both should_stop_blob and num_iter.", "execution_step"
        )
    step = ExecutionStep(default_name)
    if should_stop_blob is not None:
        step.SetShouldStopBlob(should_stop_blob)
    else:
        step.SetIter(1 if num_iter is None else num_iter)
    if only_once is not None:
        step.SetOnlyOnce(only_once)
    if concurrent_substeps is not None:
        step.SetConcurrentSubsteps(concurrent_substeps)
    if report_net is not None:
        if report_interval is None:
            raise EnforceAssertionError(
                "report_net needs a report_interval.",
                "execution_step",
                condition="report_interval",
            )
        step.SetReportNet(report_net, report_interval)
    if num_concurrent_instances is not None:
        step.SetNumConcurrentInstances(num_concurrent_instances)
    if create_workspace:
        step.SetCreateWorkspace(True)
    if run_every_ms:
        step.RunEveryMillis(run_every_ms)
    _add_all(step, steps_or_nets)
    return step


def _add_all(step: ExecutionStep, steps_or_nets: Any) -> None:
    if isinstance(steps_or_nets, ExecutionStep):
        step.AddSubstep(steps_or_nets)
    elif isinstance(steps_or_nets, Net):
        step.AddNet(steps_or_nets)
    elif isinstance(steps_or_nets, Iterable) and not isinstance(steps_or_nets, (str, bytes)):
        every = list(steps_or_nets)
        if all(isinstance(one, Net) for one in every):
            for net in every:
                step.AddNet(net)
        else:
            for one in every:
                step.AddSubstep(to_execution_step(one))
    elif steps_or_nets:
        raise EnforceValueError(
            "steps_or_nets must be a step, a net, or a list of nets or steps.",
            "execution_step",
        )


def scoped_execution_step(name: str | None, *args: Any, **kwargs: Any) -> ExecutionStep:
    """Return `execution_step` with the name prefixed by the current name scope."""
    return execution_step(ScopedName(name) if name else name, *args, **kwargs)
