# SPDX-License-Identifier: Apache-2.0
"""Operator: the base class of operators, for authors of new ones."""

from __future__ import annotations

from reprlib import repr as short
from types import BuiltinFunctionType

from bridge.annotation import Any
from bridge.c10 import Device, DeviceType, EnforceNotMet
from bridge.c10 import tensor as tensor_type
from bridge.c10.errors import EnforceTypeError
from bridge.c10.options import as_options
from bridge.caffe2.base.wrapped_errors import also_as, wrap_error
from bridge.caffe2.definitions.argument_values import repeated_value, single_value
from bridge.caffe2.definitions.schemas import check_names
from bridge.caffe2.execution.definition import Definition, definition_of
from bridge.caffe2.execution.operator_core import OperatorCore
from bridge.caffe2.tensor.tensor import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from bridge.caffe2.blobs.blob import Blob


class Operator(OperatorCore):
    """An operator: subclass it, implement `RunOnDevice`, register the subclass.

    The framework creates operators, by ``cls(definition, workspace)``. An ``__init__(self, *args)``
    of your own calls ``super().__init__(*args)`` first. Attributes live as long as the operator:
    for one run by `RunOperatorOnce`, for all runs of a net.

    A run that fails leaves the outputs unchanged: the tensors that the blobs hold, their sizes,
    types, buffers and elements. For this the elements of each output are copied before they can be
    written in place, unless the class sets `writes_last`.

    Raises EnforceNotMet: an input blob does not exist (also a KeyError), or the arguments are not
    an OperatorDef and a Workspace (also a TypeError).
    Follows Operator, caffe2/core/operator.h, PyTorch 1.8.1.

    >>> import numpy as np
    >>> from bridge import c10, caffe2
    >>> from bridge.caffe2 import core, workspace
    >>> @caffe2.register_operator("MultiplyBy", inputs=1, outputs=1)
    ... class MultiplyBy(caffe2.Operator):
    ...     writes_last = True
    ...
    ...     def __init__(self, *args):
    ...         super().__init__(*args)
    ...         self.factor = self.GetSingleArgument("factor", 1.0)
    ...
    ...     def RunOnDevice(self):
    ...         x = self.Input(0)
    ...         if not self.InputIsType(0, c10.tensor):
    ...             return False
    ...         self.Output(0, x.sizes(), x.dtype()).numpy()[...] = self.factor * x.numpy()
    >>> workspace.FeedBlob("x", np.array([1.0, 2.0]))
    True
    >>> op = core.CreateOperator("MultiplyBy", "x", "y", factor=3.0)
    >>> workspace.RunOperatorOnce(op), workspace.FetchBlob("y")
    (True, array([3., 6.]))

    The same operator by itself, and the results of its methods:

    >>> multiply = MultiplyBy(op, workspace.Workspace.current)
    >>> multiply
    <MultiplyBy: operator 'MultiplyBy' with inputs ['x'] and outputs ['y']>
    >>> multiply.InputSize(), multiply.OutputSize(), multiply.device
    (1, 1, Device('cpu'))
    >>> multiply.HasArgument("factor"), multiply.HasSingleArgumentOfType("factor", float)
    (True, True)
    >>> multiply.GetSingleArgument("absent", 7), multiply.GetRepeatedArgument("absent", [1, 2])
    (7, [1, 2])
    >>> multiply.InputIsTensorType(0, "cpu"), multiply.OutputIsType(0, bytes), multiply.Run()
    (True, False, True)
    >>> (
    ...     multiply.debug_def() == op,
    ...     multiply.IsInputOutputAlias(0, 0),
    ...     multiply.check(multiply._definition),
    ... )
    (True, False, {})
    >>> multiply.Inputs() == [multiply.InputBlob(0)], multiply.Outputs() == [multiply.OutputBlob(0)]
    (True, True)

    Outputs with new memory, a copy of the input, and shared with the input:

    >>> multiply.OutputTensor(0, [3], "int64").sizes(), multiply.XOutput(0, [2]).dtype()
    (ArrayRef([3]), TypeMeta('float32'))
    >>> multiply.XOutputTensor(0, [2]) is multiply.Output(0)  # another wrapper
    False
    >>> x = multiply.Input(0)
    >>> multiply.OutputTensorCopyFrom(0, "cpu", x).numpy()
    array([1., 2.])
    >>> multiply.OutputTensorAlias(0, x).raw_data() == x.raw_data()
    True
    >>> multiply.SetOutputTensor(0, x)
    >>> multiply.OutputTensorOrUndefined(0).is_same(x), multiply.OutputIsTensorType(0, "cuda")
    (True, False)
    """

    writes_last: bool = False
    """Whether `RunOnDevice` writes elements after everything that can fail; no copy is needed."""

    # Whether a schema is declared with the class, which `check` compares with.
    _has_schema: bool = False

    # Whether a run may do more than write outputs, as writing a file: shape inference skips these.
    _has_effects: bool = False
    # The runs of operators in nets of its own, where observers are to count them.
    _inner_runs: int = 0

    # Whether outputs in place keep their sizes, for those operators that inference skips.
    _keeps_sizes: bool = False

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Check a definition, once for all operators created from it.

        The result is their ``self._definition.checked``: {output: input} in place of a class that
        is registered with a schema, else None. Raises EnforceNotMet: a wrong number of inputs or
        outputs, or an output in place of an input that must not be, or must be and is not.
        """
        if cls._has_schema:
            return check_names(definition.type, definition.inputs, definition.outputs) or {}
        return None

    if TYPE_CHECKING:

        @property
        def _definition(self) -> Definition: ...

    def _definition_of(self, given: Any) -> Definition:
        """Return the definition in `given`, an OperatorDef or a Definition, for this class."""
        definition = given if isinstance(given, Definition) else definition_of(given, "Operator")
        if definition.cls is not type(self):
            definition = Definition(definition.message(), definition.data)
            assign(definition, type(self), 0)
        return definition

    def RunOnDevice(self) -> bool | None:
        """Compute the outputs from the inputs; return False or raise an error if that fails."""
        raise NotImplementedError(
            f"{type(self).__name__} has no RunOnDevice(self), which computes its outputs"
        )

    def Cancel(self) -> None:
        """Make a run in another thread fail soon; for operators that wait. Nothing, by default."""

    @property
    def device(self) -> Device:
        """The device that the operator runs on and allocates its outputs on."""
        return self._definition.device

    def HasArgument(self, name: str) -> bool:
        """Return whether there is an argument `name`."""
        return name in self._definition.arguments

    def HasSingleArgumentOfType(self, name: str, kind: type) -> bool:
        """Return whether argument `name` has one value of `kind`: int, float, str or bytes."""
        field = {int: "i", bool: "i", float: "f", str: "s", bytes: "s"}.get(kind)
        return field is not None and field in self._definition.arguments.get(name, ())

    def GetSingleArgument(self, name: str, default: Any = None) -> Any:
        """Return the value of argument `name`, or `default` if there is no such argument.

        It is converted to the type of a `default` that is bool, int, float, str or bytes. Strings
        are `str`, or `bytes` if they are not UTF-8. A nested net is a NetDef.

        Raises EnforceNotMet, also a TypeError: the argument has several values, or the conversion
        would change its value. Follows ArgumentHelper::GetSingleArgument,
        caffe2/utils/proto_utils.cc, which refuses a whole number for a float.
        """
        return single_value(self._definition.arguments, name, default)

    def GetRepeatedArgument(self, name: str, default: Sequence[Any] = ()) -> list[Any]:
        """Return the values of argument `name` as a list, or ``list(default)`` if it is absent.

        They are converted to the type of the first element of `default`, if any. The list is empty
        if the argument is a single value. Raises EnforceNotMet, also a TypeError: they are of
        another type.
        Follows ArgumentHelper::GetRepeatedArgument, caffe2/utils/proto_utils.cc.
        """
        return repeated_value(self._definition.arguments, name, default)

    def InputIsType(self, i: int, T: Any) -> bool:
        """Return whether input `i` holds an object of type `T`, as `Blob.IsType`."""
        return self.InputBlob(i).IsType(T)

    def InputIsTensorType(self, i: int, device_type: Any) -> bool:
        """Return whether input `i` holds a tensor on a device of that type."""
        return _is_tensor_on(self.InputBlob(i), device_type)

    def OutputIsType(self, i: int, T: Any) -> bool:
        """Return whether output `i` holds an object of type `T`, as `Blob.IsType`."""
        return self.OutputBlob(i).IsType(T)

    def OutputIsTensorType(self, i: int, device_type: Any) -> bool:
        """Return whether output `i` holds a tensor on a device of that type."""
        return _is_tensor_on(self.OutputBlob(i), device_type)

    def SetOutputTensor(self, i: int, tensor: Any) -> None:
        """Set output `i` to `tensor`, a caffe2.Tensor; nothing is copied."""
        self.OutputBlob(i)._set_tensor(_checked_tensor(tensor, "Operator.SetOutputTensor"), True)

    def OutputTensorCopyFrom(self, i: int, options: Any, src: Any, async_: bool = False) -> Tensor:
        """Copy `src` into output `i`, on the device of `options`; return its tensor.

        Raises EnforceNotMet: `options` has another type than `src`, or `src` is not allocated.
        Follows OperatorBase::OutputTensorCopyFrom.
        """
        caller = "Operator.OutputTensorCopyFrom"
        source = _checked_tensor(src, caller)
        chosen = as_options(options)
        if chosen.has_dtype() and chosen.dtype() is not source.dtype():
            raise EnforceNotMet(
                f"The source is of {source.dtype()}, so the copy cannot be of {chosen.dtype()}.",
                caller,
                condition="options.dtype() == src.dtype()",
            )
        if not source.storage_initialized():
            raise EnforceNotMet(
                "The source is not allocated: call mutable_data(T) on it first.",
                caller,
                condition="src.storage_initialized()",
            )
        typed = (source.sizes(), chosen.dtype(source.dtype())) if source.dtype() else ()
        tensor = self.Output(i, *typed)
        tensor.CopyFrom(source, async_)
        return tensor

    def OutputTensorAlias(self, i: int, src: Any) -> Tensor:
        """Set output `i` to a tensor that shares the elements of `src`; return that tensor.

        Its metadata is its own. Raises EnforceNotMet: `src` is not a caffe2.Tensor, or is not
        allocated.
        Follows OperatorBase::OutputTensorAlias.
        """
        alias = _checked_tensor(src, "Operator.OutputTensorAlias").Alias()
        self.OutputBlob(i)._set_tensor(alias, True)
        return alias

    def debug_def(self) -> Any:
        """Return a copy of the OperatorDef."""
        return self._definition.message()

    def Run(self, stream_id: int = 0) -> bool:
        """Run `RunOnDevice`; return True.

        Raises EnforceNotMet, from the error that `RunOnDevice` raised: it names the operator and
        its blobs. The outputs are then unchanged.
        """
        try:
            return self._run()
        except Exception as cause:
            raise failure(self._definition, cause, "Operator.Run") from cause

    def _refuse_type(self, i: int, types: Any) -> None:
        dtype = self.Input(i).dtype()
        raise EnforceTypeError(
            f"Input {i}, blob {self._definition.inputs[i]!r}, has "
            f"{'the type ' + dtype.name if dtype else 'no type yet'}; {self._definition.type} "
            f"takes {', '.join(one.name for one in types)} there.",
            self._definition.type,
            condition="IsType(T)",
        )

    def _refuse_device(self, i: int) -> None:
        tensor, device = self.Input(i), self._definition.device
        copy = "CopyGPUToCPU" if device.type == DeviceType.CPU else "CopyCPUToGPU"
        if tensor.device().type == device.type:
            copy = "Copy"
        raise EnforceNotMet(
            f"Input {i}, blob {self._definition.inputs[i]!r}, is on {tensor.device()}, and "
            f"{self._definition.type} runs on {device}. Copy it by the operator {copy}, or feed it "
            "with that device_option.",
            self._definition.type,
            condition="the inputs are on the operator's device",
        )

    def __repr__(self) -> str:
        return f"<{type(self).__qualname__}: {self._definition}>"


def assign(definition: Definition, cls: type[Operator], generation: int) -> None:
    """Set the class that runs `definition`. Raises EnforceNotMet: its `check` fails."""
    checked = cls.check(definition)
    # each compiled base class has a `__new__` of its own
    plain = cls.__init__ is Operator.__init__ and isinstance(cls.__new__, BuiltinFunctionType)
    definition.checked = checked
    definition._assign(cls, generation, plain, bool(cls.writes_last))


def failure(
    definition: Definition,
    cause: Exception,
    caller: str,
    where: str = "",
    blobs: Mapping[str, Blob] | None = None,
) -> EnforceNotMet:
    """Return the EnforceNotMet of an operator that `cause` stopped, to be raised from `cause`.

    It is also an instance of the class of `cause`. To the text of an error of Python's or
    torch's, the inputs in `blobs` and the arguments are added.
    """
    name, text = str(definition), ""
    if blobs is not None and type(cause) in _WITHOUT_VALUES:
        found = [blobs[one]._describe_contents() for one in definition.inputs if one in blobs]
        items = definition.arguments.items()
        given = [f"{key}={short(next(iter(value.values()), None))}" for key, value in items]
        text = f" on {'; '.join([*found[:8], *given[:8]])}" if found or given else ""
    if definition.debug_info:
        text += f" (created at: {definition.debug_info})"
    error = wrap_error(f"{name[0].upper()}{name[1:]}{where} failed{text}", caller, cause)
    return also_as(error, cause)


_WITHOUT_VALUES = {
    AssertionError, AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError,
    ValueError, ZeroDivisionError,
}  # fmt: skip


def _is_tensor_on(blob: Blob, device_type: Any) -> bool:
    tensor = blob._tensor
    return (
        blob.IsType(tensor_type)
        and tensor is not None
        and tensor.defined()
        and tensor.GetDeviceType() == Device(device_type).type
    )


def _checked_tensor(src: Any, caller: str) -> Tensor:
    if not isinstance(src, Tensor):
        raise EnforceTypeError(
            f"A caffe2.Tensor is needed, not {type(src).__name__}; caffe2.Tensor(at_tensor) makes "
            "one.",
            caller,
        )
    return src
