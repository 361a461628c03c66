# SPDX-License-Identifier: Apache-2.0
"""Operator: what an operator author subclasses."""

from __future__ import annotations

from bridge.c10 import Device, EnforceNotMet
from bridge.c10 import tensor as tensor_type
from bridge.c10.errors import EnforceKeyError
from bridge.caffe2.base.errors import also_as, wrap_error
from bridge.caffe2.base.text import listed
from bridge.caffe2.definitions.arguments import repeated_value, single_value
from bridge.caffe2.execution.definition import Definition, definition_of
from bridge.caffe2.execution.operator_core import OperatorCore
from bridge.caffe2.workspaces.workspace import Workspace, created, found_blob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from bridge.caffe2.blobs.blob import Blob

__all__ = ["Operator", "assign", "failure"]


class Operator(OperatorCore):
    """An operator: subclass it, register the subclass, implement `RunOnDevice`.

    ``__init__(self, *args)`` is called by the framework; one of your own calls
    ``super().__init__(*args)`` first, and puts its state into attributes, which live as long as
    the operator: for one run of `RunOperatorOnce`, for all runs of a net.

    A run that fails leaves the outputs as they were: which tensors the blobs hold, their sizes,
    types, buffers, and elements. For the elements a copy of each output that is written in place is
    kept during the run, unless the class says `writes_last`.

    Raises EnforceNotMet: an input blob does not exist (also a KeyError), or the arguments are not
    an OperatorDef and a Workspace. Follows Operator, caffe2/core/operator.h, PyTorch 1.8.1.

    >>> from bridge import caffe2
    >>> class Double(caffe2.Operator):
    ...     def RunOnDevice(self):
    ...         x = self.Input(0)
    ...         y = self.Output(0, x.sizes(), x.dtype())
    ...         y.numpy()[...] = 2 * x.numpy()
    """

    writes_last: bool = False
    """`RunOnDevice` writes elements only after all that can fail, so that no copy is kept."""

    num_inputs: int | tuple[int, int | None] | None = None
    """How many inputs there may be: a number, least and most, or None: any. Checked when made."""

    num_outputs: int | tuple[int, int | None] | None = None
    """How many outputs there may be, in the same way."""

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Check a definition when it is read, once for all operators that are made of it.

        What this gives is ``self._definition.checked`` for them; here it is None.
        """
        if cls.num_inputs is not None:
            _check_count("input", cls.num_inputs, definition.inputs, definition)
        if cls.num_outputs is not None:
            _check_count("output", cls.num_outputs, definition.outputs, definition)

    def __init__(self, definition: Any, workspace: Workspace | None = None) -> None:
        if not isinstance(definition, Definition):
            definition = definition_of(definition, "Operator")
        if workspace is None:
            workspace = Workspace.current
        if definition.cls is not type(self):
            definition = Definition(definition.message(), definition.data)
            assign(definition, type(self), 0)
        blobs = workspace._blobs
        self._bind(
            definition,
            workspace,
            tuple([blobs.get(name) or _input_blob(workspace, name) for name in definition.inputs]),
            tuple([blobs.get(name) or created(workspace, name) for name in definition.outputs]),
        )

    def RunOnDevice(self) -> bool | None:
        """Compute the outputs from the inputs; False, or an error, says that it failed."""
        raise NotImplementedError(
            f"{type(self).__name__} has no RunOnDevice(self), which computes its outputs"
        )

    @property
    def device(self) -> Device:
        """The device that the operator runs on, where its outputs go."""
        return self._definition.device

    def HasArgument(self, name: str) -> bool:
        """Return whether there is an argument `name`."""
        return name in self._definition.arguments

    def HasSingleArgumentOfType(self, name: str, kind: type) -> bool:
        """Return whether argument `name` has one value of `kind`: int, float, str or bytes."""
        field = {int: "i", bool: "i", float: "f", str: "s", bytes: "s"}.get(kind)
        return field is not None and field in self._definition.arguments.get(name, ())

    def GetSingleArgument(self, name: str, default: Any = None) -> Any:
        """Return the value of argument `name`, or `default` if there is none.

        Of the type of `default`, where that is bool, int, float, str or bytes; if it is None, as
        it is. Strings are `str`, or `bytes` where they are not UTF-8. A nested net is a NetDef.

        Raises EnforceNotMet, also a TypeError: the argument has several values, or one that would
        change if it were of that type.
        Follows ArgumentHelper::GetSingleArgument, caffe2/utils/proto_utils.cc; there a float is not
        taken from a whole number, here it is.
        """
        values = self._definition.arguments.get(name)
        if values is None:
            return default
        return single_value(values, name, default, "Operator.GetSingleArgument")

    def GetRepeatedArgument(self, name: str, default: Sequence[Any] = ()) -> list[Any]:
        """Return the values of argument `name` as a list, or those of `default` if there is none.

        Of the type of the first element of `default`, if it has one. Empty where the argument has
        but a single value. Raises EnforceNotMet, also a TypeError: they are of another type.
        Follows ArgumentHelper::GetRepeatedArgument, caffe2/utils/proto_utils.cc.
        """
        values = self._definition.arguments.get(name)
        if values is None:
            return list(default)
        return repeated_value(values, name, default, "Operator.GetRepeatedArgument")

    def InputIsType(self, i: int, T: Any) -> bool:
        """Return whether input `i` holds something of the type that `T` names, as `Blob.IsType`."""
        return self.InputBlob(i).IsType(T)

    def InputIsTensorType(self, i: int, device_type: Any) -> bool:
        """Return whether input `i` holds a tensor on a device of that type."""
        return _is_tensor_on(self.InputBlob(i), device_type)

    def OutputIsType(self, i: int, T: Any) -> bool:
        """Return whether output `i` holds something of the type that `T` names."""
        return self.OutputBlob(i).IsType(T)

    def OutputIsTensorType(self, i: int, device_type: Any) -> bool:
        """Return whether output `i` holds a tensor on a device of that type."""
        return _is_tensor_on(self.OutputBlob(i), device_type)

    def debug_def(self) -> Any:
        """Return the OperatorDef, a copy."""
        return self._definition.message()

    def Run(self, stream_id: int = 0) -> bool:
        """Run; return True. If it fails, the outputs are what they were.

        Raises EnforceNotMet, from the error that was met: it names the operator and its blobs.
        """
        try:
            return self._run()
        except Exception as cause:
            raise failure(self._definition, cause, "Operator.Run") from cause

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}: {self._definition}>"


def assign(definition: Definition, cls: type[Operator], generation: int) -> None:
    """Have `definition` be run by `cls`.

    Raises EnforceNotMet: the class refuses it.
    """
    checked = cls.check(definition)
    plain = cls.__init__ is Operator.__init__ and cls.__new__ is Operator.__new__
    definition.checked = checked
    definition._assign(cls, generation, plain, bool(cls.writes_last))


def failure(
    definition: Definition, cause: Exception, caller: str, where: str = ""
) -> EnforceNotMet:
    """Make the EnforceNotMet of an operator that `cause` stopped, to be raised from that.

    It is of the kind of `cause`, too.
    """
    name, text = str(definition), ""
    if definition.debug_info:
        text = f" (made at: {definition.debug_info})"
    error = wrap_error(f"{name[0].upper()}{name[1:]}{where} failed{text}", caller, cause)
    return also_as(error, cause)


def _input_blob(workspace: Workspace, name: str) -> Blob:
    blob = found_blob(workspace, name)
    if blob is None:
        raise EnforceKeyError(
            f"There is no input blob {name!r}; the workspace has {listed(workspace._blobs)}. Feed "
            "it first by FeedBlob(name, value), or run what makes it.",
            "Operator",
        )
    return blob


def _check_count(
    what: str,
    allowed: int | tuple[int, int | None],
    names: tuple[str, ...],
    definition: Definition,
) -> None:
    least, most = (allowed, allowed) if isinstance(allowed, int) else allowed
    if len(names) >= least and (most is None or len(names) <= most):
        return
    wanted = (
        str(least)
        if most == least
        else f"{least} or more"
        if most is None
        else f"{least} to {most}"
    )
    raise EnforceNotMet(
        f"{definition.type} takes {wanted} {what}{'' if wanted == '1' else 's'}, and is given "
        f"{len(names)}.",
        "Operator",
    )


def _is_tensor_on(blob: Blob, device_type: Any) -> bool:
    tensor = blob._tensor
    return (
        blob.IsType(tensor_type)
        and tensor is not None
        and tensor.defined()
        and tensor.GetDeviceType() == Device(device_type).type
    )
