# SPDX-License-Identifier: Apache-2.0
"""Net: a NetDef under construction, with a method for each operator type.

Follows Net, caffe2/python/core.py, PyTorch 1.8.1.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable

from bridge.annotation import Any, ClassVar
from bridge.c10.errors import (
    EnforceAssertionError,
    EnforceKeyError,
    EnforceTypeError,
    EnforceValueError,
)
from bridge.caffe2.base.messages import as_message, caffe2_pb2, check_text, kind_of, set_fields
from bridge.caffe2.base.names import new_name
from bridge.caffe2.base.wrapped_errors import wrapping
from bridge.caffe2.core.cloning import blob_names, net_names_used
from bridge.caffe2.core.net_base import NetBase
from bridge.caffe2.definitions.argument_values import MakeArgument
from bridge.caffe2.definitions.blob_reference import (
    BlobReference,
    ScopedBlobReference,
    ScopedName,
    no_operator,
    references,
)
from bridge.caffe2.definitions.create_operator import CreateOperator
from bridge.caffe2.definitions.operator_types import RegisteredOperators, is_registered
from bridge.caffe2.definitions.python_functions import python_arguments
from bridge.caffe2.definitions.tracebacks import extract_stacktrace, operator_tracebacks
from bridge.caffe2.gradients.backward_pass import IR
from bridge.caffe2.gradients.gradient_slice import GradientSlice


class _Prefixes(threading.local):
    """The prefixes of names of new nets, from the builders whose `with` blocks a thread is in."""

    def __init__(self) -> None:
        self.open = [""]  # the innermost last; an empty str outside of all


prefixes = _Prefixes()


class Net(NetBase):
    """A net under construction: operators that run in order, and its external inputs and outputs.

    ``net.Relu("x", "y")`` adds an operator and returns a reference to its output, or a tuple of
    references to several. An input that no operator of the net writes becomes an external input.
    Outputs that are not given, or given as their number, are named after the net and the operator.

    name_or_proto: a name; None, which is an empty name; or a NetDef, which is copied. A number is
    appended to a name that another net of this process has.

    Raises EnforceNotMet: `name_or_proto` is none of these (also an AssertionError), or a name is
    not UTF-8 (also a ValueError).

    >>> from bridge.caffe2 import core
    >>> net = core.Net("doc")
    >>> y = net.Python(print)("x", "y")
    >>> y, net.external_inputs
    (BlobReference("y"), [BlobReference("x")])
    """

    _net_names_used: ClassVar[set[str]] = net_names_used

    def __init__(self, name_or_proto: Any) -> None:
        self._net: Any = caffe2_pb2().NetDef()
        self._op_outputs: set[str] = set()
        self._external_input_map: set[str] = set()
        self._registered_blob_names: set[str] = set()
        self._next_blob_name_ids: dict[str, int] = {}
        self._next_name_index = 0
        # Whether `Proto` returned the message since the two sets of names were computed.
        self._recreate_lookup_tables = False
        self._attr_dict: defaultdict[str, list[Any]] = defaultdict(list)
        if kind_of(name_or_proto) == "NetDef":
            self._net.CopyFrom(as_message(name_or_proto, "NetDef", "Net"))
            check_text(self._net, (self._net.name, *self.UsedBlobNames()), "Net")
            self._RecreateLookupTables()
            self._next_name_index = self._after_generated_names()
            name = self._net.name
        elif name_or_proto is None or isinstance(name_or_proto, str):
            name = name_or_proto or ""
        else:
            raise EnforceAssertionError(
                f"A net is created from a name or a NetDef, not {type(name_or_proto).__name__}.",
                "Net",
            )
        set_fields(self._net, "Net", name=name)  # raises before the name counts as used
        self._net.name = Net._get_next_net_name(name)

    def _after_generated_names(self) -> int:
        """Return the first number that no generated blob name contains."""
        prefix = self._net.name + "_blob_"
        used = [
            int(name[len(prefix) :])
            for name in self.UsedBlobNames()
            if name.startswith(prefix) and name[len(prefix) :].isdecimal()
        ]
        return max(used, default=-1) + 1

    @staticmethod
    def current_prefix() -> str:
        """Return the prefix of the names of nets: the current NetBuilder's, or an empty str."""
        return prefixes.open[-1]

    @staticmethod
    def _get_next_net_name(basename: str) -> str:
        prefix = Net.current_prefix()
        full = "/".join(part for part in (prefix, basename) if part)
        return new_name(full, Net._net_names_used)

    def Name(self) -> str:
        """Return the name of the net."""
        return str(self._net.name)

    def __str__(self) -> str:
        return self.Name()

    def _repr_svg_(self) -> str:
        """Return a picture of the net; notebooks show it."""
        from bridge.caffe2.core.net_picture import net_picture

        return net_picture(self._net, self.Name())

    def Proto(self) -> Any:
        """Return the NetDef of the net, not a copy; it may be changed."""
        self._recreate_lookup_tables = True
        return self._net

    # Operators.

    def __getattr__(self, op_type: str) -> Callable[..., Any]:
        if op_type.startswith("_"):
            raise AttributeError(f"A Net has no attribute {op_type!r}.")
        if not is_registered(op_type):
            raise no_operator(op_type)

        def add(inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
            return self._CreateAndAddToSelf(op_type, inputs, outputs, **kwargs)

        return add

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *RegisteredOperators()})

    def _CreateAndAddToSelf(
        self, op_type: str, inputs: Any, outputs: Any = None, **kwargs: Any
    ) -> Any:
        """Add an operator; return a reference to its output, a tuple of them, or None."""
        caller = f"Net.{op_type}"
        inputs = references(inputs, caller=caller)
        undefined = [blob for blob in inputs if not self.BlobIsDefined(blob)]
        for blob in undefined:
            if blob.Net() is self:
                raise EnforceAssertionError(
                    f"Net {self.Name()!r} has no blob {str(blob)!r}, although the reference names "
                    "this net.",
                    caller,
                )
        if outputs is None:
            outputs = self.NextName(prefix=op_type)
        elif type(outputs) is int:
            outputs = [self.NextName(prefix=op_type, output_id=i) for i in range(outputs)]
        outputs = references(outputs, net=self, caller=caller)
        operator = CreateOperator(op_type, inputs, outputs, **kwargs)
        for blob in undefined:
            if not self.BlobIsDefined(blob):
                self.AddExternalInput(blob)
        self._ExtendOps([operator])
        places = operator_tracebacks[self.Name()]
        places[len(self._net.op) - 1] = extract_stacktrace(2)
        refs = tuple(BlobReference(name, self) for name in operator.output)
        return None if not refs else refs[0] if len(refs) == 1 else refs

    def Python(
        self,
        f: Any,
        grad_f: Any = None,
        python_func_type: Any = None,
        pass_workspace: bool = False,
        grad_output_indices: Any = None,
        grad_input_indices: Any = None,
    ) -> Callable[..., Any]:
        """Return a function that adds an operator which calls ``f(inputs, outputs)``.

        `f` receives lists of the blobs' tensors (`BlobTensor`), and the workspace as well with
        `pass_workspace`. If `f` is a tuple ``(function, args, kwargs)``, the function that this
        call returns is used; it is called when the net is created. With `python_func_type`, the
        function is ``python_func_type(f).forward``, and its gradient ``backward``.

        `grad_f` computes the gradient. Its inputs are the inputs of the operator, the outputs, and
        the gradients of the outputs, or of those numbered in `grad_output_indices`. Its outputs are
        the gradients of the inputs, or of those numbered in `grad_input_indices`.

        Raises EnforceNotMet: a function cannot be called (also a TypeError), or only one of `f` and
        `grad_f` is a tuple (also an AssertionError).
        """
        arguments = python_arguments(f, grad_f, python_func_type, pass_workspace)
        indices = {
            "grad_output_indices": list(grad_output_indices or []),
            "grad_input_indices": list(grad_input_indices or []),
        }

        def add(inputs: Any, outputs: Any = None, **kwargs: Any) -> Any:
            arguments_and_more = {**indices, **kwargs, **arguments}
            return self._CreateAndAddToSelf("Python", inputs, outputs, **arguments_and_more)

        return add

    def Const(self, array: Any, blob_out: Any = None, dtype: Any = None) -> Any:
        """Add an operator that fills a blob with the values and shape of `array`.

        int32, int64, bool and strings keep their type; other types become float32. Raises
        EnforceNotMet: NumPy cannot convert `array`, or the elements cannot be arguments.

        >>> from bridge.caffe2 import core
        >>> net = core.Net("const_doc")
        >>> net.Const([1.5, 2.5], "c"), net.Proto().op[0].type
        (BlobReference("c"), 'GivenTensorFill')
        """
        import numpy as np

        if isinstance(array, bool):
            return self.ConstantFill([], blob_out or 1, dtype=5, value=array)
        with wrapping("NumPy cannot convert the constant", "Net.Const", (TypeError, ValueError)):
            values = np.array(array, dtype=dtype)
        kind = {"int32": "Int", "int64": "Int64", "bool": "Bool"}.get(values.dtype.name, "")
        if values.dtype.kind in "SUO":
            kind = "String"
        return getattr(self, f"GivenTensor{kind}Fill")(
            [], blob_out or 1, shape=values.shape, values=values.reshape(-1).tolist()
        )

    def LogInfo(self, *msg_or_blobs: Any) -> None:
        """Add operators that print each of the texts and blobs, in order."""
        for one in msg_or_blobs:
            blob = one
            if not isinstance(one, BlobReference):
                blob = self.GivenTensorStringFill([], self.NextName("log"), shape=[], values=[one])
            self.Print(blob, [])

    def AddGradientOperators(self, ys: Any, skip: int = 0) -> dict[Any, Any]:
        """Add the operators that compute gradients of `ys` backwards through the net.

        Return a dict of blobs and their gradients, each a BlobReference or, if it is sparse, a
        `GradientSlice`. ys: a list of blobs whose gradients are ones, as for a loss, or a dict of
        blobs and the names of their gradients. skip: the number of operators at the front that are
        left out.

        Raises EnforceNotMet, and adds nothing: an operator has no gradient; a gradient operator
        needs a blob that another operator overwrote; `ys` is neither (also a TypeError).

        >>> from bridge.caffe2 import core
        >>> net = core.Net("gradient_doc")
        >>> net.AddGradientOperators([net.Relu("x", "y")])["x"]
        BlobReference("x_grad")
        """
        if not isinstance(skip, int):
            raise EnforceTypeError(
                f"skip is an int, not {type(skip).__name__}.", "Net.AddGradientOperators"
            )
        operators, gradients = IR(self._net.op[skip:]).GetBackwardPass(ys)
        self._ExtendOps(operators)
        return gradients

    def AddArgument(self, arg_name: str, arg_value: Any) -> None:
        """Add an argument to the net itself; see `MakeArgument` for the values."""
        self._net.arg.append(MakeArgument(arg_name, arg_value))

    def _ExtendOps(self, new_ops: Iterable[Any]) -> None:
        for operator in new_ops:
            self._net.op.append(operator)
            self._op_outputs.update(operator.output)

    def extend_ops(self, new_ops: Iterable[Any]) -> None:
        """Append OperatorDefs; copies of them, if of another class than ours.

        Raises EnforceNotMet, also a TypeError: not an iterable of OperatorDefs.
        """
        caller = "Net.extend_ops"
        if not isinstance(new_ops, Iterable):
            raise EnforceTypeError(
                f"new_ops must be a list of OperatorDefs, not {type(new_ops).__name__}.", caller
            )
        self._ExtendOps([as_message(one, "OperatorDef", caller) for one in new_ops])

    # Blobs.

    def _RecreateLookupTables(self) -> None:
        self._op_outputs = {name for operator in self._net.op for name in operator.output}
        self._external_input_map = set(self._net.external_input)
        self._recreate_lookup_tables = False

    def _InvalidateLookupTables(self) -> None:
        self._recreate_lookup_tables = True

    def _CheckLookupTables(self) -> None:
        """Raise AssertionError unless the tables know the blobs of the net; Caffe2's tests ask."""
        assert self._op_outputs >= {name for operator in self._net.op for name in operator.output}
        assert self._external_input_map >= set(self._net.external_input)

    def BlobIsDefined(self, blob: Any) -> bool:
        """Return whether the blob is an output of an operator or an external input of the net."""
        if self._recreate_lookup_tables:
            self._RecreateLookupTables()
        name = str(blob)
        return name in self._op_outputs or name in self._external_input_map

    def is_external_input(self, blob: Any) -> bool:
        """Return whether the blob is an external input of the net."""
        if self._recreate_lookup_tables:
            self._RecreateLookupTables()
        return str(blob) in self._external_input_map

    def UsesBlob(self, blob: Any) -> bool:
        """Return whether the blob is an input of an operator or an external input of the net."""
        name = str(blob)
        return self.is_external_input(name) or any(
            name in operator.input for operator in self._net.op
        )

    def UsedBlobNames(self) -> set[str]:
        """Return the names of all inputs and outputs, of the net and its operators."""
        return blob_names(self._net)

    def GetBlobRef(self, blob_name: Any) -> BlobReference:
        """Return a reference to a blob of the net.

        Raises EnforceNotMet, also a KeyError: `BlobIsDefined` is False for the name.
        """
        if not self.BlobIsDefined(blob_name):
            raise EnforceKeyError(
                f"Net {self.Name()!r} does not define blob {str(blob_name)!r}.",
                "Net.GetBlobRef",
                condition="BlobIsDefined(name)",
            )
        return BlobReference(str(blob_name), self)

    def NextBlob(self, prefix: Any = "unnamed") -> BlobReference:
        """Return a reference to a new blob, named `prefix` or, if that is taken, ``PREFIX_auto_N``.

        The name differs from the names of all blobs of the net and of all earlier calls.
        """
        base = BlobReference(prefix)
        blob, number = base, 0
        while str(blob) in self._registered_blob_names or self.BlobIsDefined(blob):
            blob = base + f"_auto_{number}"
            number += 1
        self._registered_blob_names.add(str(blob))
        return blob

    def NextScopedBlob(self, prefix: str = "unnamed") -> BlobReference:
        """Return a reference to a new blob of the current name scope; see `NextBlob`."""
        return self.NextBlob(ScopedName(prefix))

    def NextName(self, prefix: str | None = None, output_id: int | None = None) -> str:
        """Return a new blob name that starts with the name of the net; superseded by `NextBlob`."""
        if not prefix:
            self._next_name_index += 1
            return f"{self.Name()}_blob_{self._next_name_index - 1}"
        suffix = "" if output_id is None else f":{output_id}"
        base = f"{self.Name()}/{prefix}"
        key = name = base + suffix
        number = self._next_blob_name_ids.get(key, 2)
        while self.BlobIsDefined(ScopedBlobReference(name)):
            name = f"{base}_{number}{suffix}"
            number += 1
            self._next_blob_name_ids[key] = number
        return name

    def AddExternalInput(self, *inputs: Any) -> Any:
        """Add external inputs; return a reference to the input, or a list of references to several.

        Raises EnforceNotMet, also an AssertionError: no input is given, or the net already has one
        of that name.
        """
        caller = "Net.AddExternalInput"
        if not inputs:
            raise EnforceAssertionError("No input is given.", caller, condition="len(inputs) > 0")
        if self._recreate_lookup_tables:
            self._RecreateLookupTables()
        names = [str(one) for one in inputs]
        for number, name in enumerate(names):
            if name in self._external_input_map or name in names[:number]:
                raise EnforceAssertionError(f"Net already contains an input named {name}.", caller)
        set_fields(self._net, caller, external_input=names)
        self._external_input_map.update(names)
        refs = [BlobReference(name) for name in names]
        return refs[0] if len(refs) == 1 else refs

    def AddExternalOutput(self, *outputs: Any) -> None:
        """Add external outputs, given as BlobReferences.

        Raises EnforceNotMet, also an AssertionError: an output is not a BlobReference, or not a
        blob of the net.
        """
        for output in outputs:
            if not isinstance(output, BlobReference) or not self.BlobIsDefined(output):
                raise EnforceAssertionError(
                    f"{output!r} is not a BlobReference to a blob of net {self.Name()!r}, or the "
                    "blob is not defined.",
                    "Net.AddExternalOutput",
                    condition="BlobIsDefined(output)",
                )
        self._net.external_output.extend([str(output) for output in outputs])

    def AddScopedExternalInputs(self, *inputs: Any) -> list[BlobReference]:
        """Add external inputs of the current name scope; return a list of references to them."""
        added = self.AddExternalInput(*[ScopedBlobReference(one) for one in inputs])
        return added if isinstance(added, list) else [added]

    def AddScopedExternalOutputs(self, *outputs: Any) -> None:
        """Add external outputs of the current name scope."""
        self.AddExternalOutput(*[ScopedBlobReference(one) for one in outputs])

    AddExternalInputs = AddExternalInput
    AddExternalOutputs = AddExternalOutput

    @property
    def external_inputs(self) -> list[BlobReference]:
        """The external inputs, a new list of references."""
        return [BlobReference(name) for name in self._net.external_input]

    @property
    def external_outputs(self) -> list[BlobReference]:
        """The external outputs, a new list of references."""
        return [BlobReference(name) for name in self._net.external_output]

    def DeduplicateGradientSlices(self, g: Any, aggregator: str = "sum") -> GradientSlice:
        """Add operators that aggregate rows that are listed twice; return the new GradientSlice.

        aggregator: "sum" or "mean". Raises EnforceNotMet: it is neither (also a ValueError), or `g`
        is not a GradientSlice (also an AssertionError).
        """
        caller = "Net.DeduplicateGradientSlices"
        if not isinstance(g, GradientSlice):
            raise EnforceAssertionError(f"Expected a GradientSlice, not {g!r}.", caller)
        kind = {"sum": "UnsortedSegmentSum", "mean": "UnsortedSegmentMean"}.get(aggregator.lower())
        if kind is None:
            raise EnforceValueError(f'{aggregator} is not supported; "sum" and "mean" are.', caller)
        unique, remapping = self.Unique([g.indices], 2, engine="SparseHash")
        return GradientSlice(unique, getattr(self, kind)([g.values, remapping], 1))

    # Attributes: objects that scripts attach to a net.

    def add_attribute(self, name: str, obj: Any) -> None:
        """Append `obj` to the list of attributes `name`."""
        self._attr_dict[name].append(obj)

    def get_attributes(self, name: str) -> list[Any]:
        """Return the list of attributes `name`; empty if there are none."""
        return self._attr_dict.get(name, [])


def get_net_name(netlike: Any) -> Any:
    """Return the name of a Net or NetDef; return other objects, such as names, unchanged."""
    if isinstance(netlike, Net):
        return netlike.Name()
    return netlike.name if kind_of(netlike) == "NetDef" else netlike


def output_to_list(op_output: Any) -> list[BlobReference]:
    """Return the result of a method of Net, one reference or several, as a list."""
    return [op_output] if isinstance(op_output, BlobReference) else list(op_output)
