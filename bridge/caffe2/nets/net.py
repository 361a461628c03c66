# SPDX-License-Identifier: Apache-2.0
"""Net: a NetDef that is built by calling its operators."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable

from bridge.c10.errors import EnforceAssertionError, EnforceKeyError, EnforceTypeError
from bridge.caffe2.base.errors import wrap_error
from bridge.caffe2.base.messages import as_message, caffe2_pb2, check_text, kind_of, set_fields
from bridge.caffe2.base.names import new_name
from bridge.caffe2.definitions.arguments import MakeArgument
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
from bridge.caffe2.gradients.backward_pass import GradientRegistry
from bridge.caffe2.nets.cloning import blob_names, net_names_used
from bridge.caffe2.nets.net_rewriting import NetRewriting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, ClassVar

__all__ = ["Net", "get_net_name", "output_to_list"]


class Net(NetRewriting):
    """A net under construction: ``net.Relu("x", "y")`` adds an operator and refers to its output.

    Made with a name, which gets a number where it was used before in this process, and which None
    leaves empty, or from a NetDef, which is copied. Inputs that nothing in the net makes become
    external inputs. Outputs that are not named, or given as a number of them, are named after net
    and operator.

    Raises EnforceNotMet: what it is made with is neither, or a name is not UTF-8.
    Follows Net, caffe2/python/core.py, PyTorch 1.8.1.

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
        # The message was given out since the two sets of names were made, so they may be old.
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
                f"A net is made with a name or a NetDef, not {type(name_or_proto).__name__}.",
                "Net",
            )
        set_fields(self._net, "Net", name=name)  # before the name is taken for used
        self._net.name = Net._get_next_net_name(name)

    def _after_generated_names(self) -> int:
        """Return the first number that no generated name of a blob has."""
        prefix = self._net.name + "_blob_"
        used = [
            int(name[len(prefix) :])
            for name in self.UsedBlobNames()
            if name.startswith(prefix) and name[len(prefix) :].isdecimal()
        ]
        return max(used, default=-1) + 1

    @staticmethod
    def current_prefix() -> str:
        """Return what names of nets begin with; nothing here."""
        return ""

    @staticmethod
    def _get_next_net_name(basename: str) -> str:
        return new_name(basename, Net._net_names_used)

    def Name(self) -> str:
        """Return the name."""
        return str(self._net.name)

    def __str__(self) -> str:
        return self.Name()

    def Proto(self) -> Any:
        """Return the NetDef itself, which may be changed."""
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
        """Add an operator; return a reference to its output, a tuple of several, None for none."""
        caller = f"Net.{op_type}"
        inputs = references(inputs, caller=caller)
        strangers = [blob for blob in inputs if not self.BlobIsDefined(blob)]
        for blob in strangers:
            if blob.Net() is self:
                raise EnforceAssertionError(
                    f"Net {self.Name()!r} has no blob {str(blob)!r}, although the reference is of "
                    "this net.",
                    caller,
                )
        if outputs is None:
            outputs = self.NextName(prefix=op_type)
        elif type(outputs) is int:
            outputs = [self.NextName(prefix=op_type, output_id=i) for i in range(outputs)]
        outputs = references(outputs, net=self, caller=caller)
        operator = CreateOperator(op_type, inputs, outputs, **kwargs)
        for blob in strangers:
            if not self.BlobIsDefined(blob):
                self.AddExternalInput(blob)
        self._ExtendOps([operator])
        places = operator_tracebacks[self.Name()]
        places[len(self._net.op) - 1] = extract_stacktrace(2)
        made = tuple(BlobReference(name, self) for name in operator.output)
        return None if not made else made[0] if len(made) == 1 else made

    def Python(
        self,
        f: Any,
        grad_f: Any = None,
        python_func_type: Any = None,
        pass_workspace: bool = False,
        grad_output_indices: Any = None,
        grad_input_indices: Any = None,
    ) -> Callable[..., Any]:
        """Return what adds an operator that calls ``f(inputs, outputs)``.

        `f` gets lists of the blobs' tensors (`BlobTensor`), and with `pass_workspace` the
        workspace. As a tuple ``(function, args, kwargs)`` it is what that call gives, made when the
        net is created. `python_func_type` makes an object of `f`, whose ``forward`` is called.
        `grad_f` computes the gradient, as ``grad_f(inputs, outputs)``: its inputs are those of the
        operator, then its outputs, then the gradients of its outputs, of those numbered in
        `grad_output_indices` if any are; its outputs are the gradients of the inputs, or of those
        in `grad_input_indices`.
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
        """Add an operator that makes a constant of the values and shape of `array`.

        int32, int64, bools and strings keep their type, all else becomes float32. Raises
        EnforceNotMet: NumPy makes no array of it, or one of other elements.
        """
        import numpy as np

        if isinstance(array, bool):
            return self.ConstantFill([], blob_out or 1, dtype=5, value=array)
        try:
            values = np.array(array, dtype=dtype)
        except (TypeError, ValueError) as cause:
            raise wrap_error("Such a constant cannot be made", "Net.Const", cause) from cause
        kind = {"int32": "Int", "int64": "Int64", "bool": "Bool"}.get(values.dtype.name, "")
        if values.dtype.kind in "SUO":
            kind = "String"
        return getattr(self, f"GivenTensor{kind}Fill")(
            [], blob_out or 1, shape=values.shape, values=values.reshape(-1).tolist()
        )

    def LogInfo(self, *msg_or_blobs: Any) -> None:
        """Add operators that print each of the texts and blobs."""
        for one in msg_or_blobs:
            blob = one
            if not isinstance(one, BlobReference):
                blob = self.GivenTensorStringFill([], self.NextName("log"), shape=[], values=[one])
            self.Print(blob, [])

    def AddGradientOperators(self, ys: Any, skip: int = 0) -> dict[Any, Any]:
        """Add the operators that compute the gradients of `ys`, of all operators so far.

        ys: blobs whose gradients are one, as that of a loss, or a dict of blobs and the names of
        their gradients. skip: how many operators at the front have none. Gives by blob the name of
        its gradient, or a `GradientSlice` where that is sparse.

        Raises EnforceNotMet, and adds none then: an operator has no gradient, or one that needs a
        blob that another operator wrote to since; also a TypeError: `ys` is neither.

        >>> from bridge.caffe2 import core
        >>> net = core.Net("gradient_doc")
        >>> net.AddGradientOperators([net.Relu("x", "y")])["x"]
        BlobReference("x_grad")
        """
        if not isinstance(skip, int):
            raise EnforceTypeError(
                f"skip is an int, not {type(skip).__name__}.", "Net.AddGradientOperators"
            )
        made, gradients = GradientRegistry.GetBackwardPass(self._net.op[skip:], ys)
        self._ExtendOps(made)
        return gradients

    def AddArgument(self, arg_name: str, arg_value: Any) -> None:
        """Add an argument of the net itself."""
        self._net.arg.append(MakeArgument(arg_name, arg_value))

    def _ExtendOps(self, new_ops: Iterable[Any]) -> None:
        for operator in new_ops:
            self._net.op.append(operator)
            self._op_outputs.update(operator.output)

    def extend_ops(self, new_ops: Iterable[Any]) -> None:
        """Add operators that were made before."""
        caller = "Net.extend_ops"
        if not isinstance(new_ops, Iterable):
            raise EnforceTypeError(
                f"Operators come as a list, not as {type(new_ops).__name__}.", caller
            )
        self._ExtendOps([as_message(one, "OperatorDef", caller) for one in new_ops])

    # Blobs.

    def _RecreateLookupTables(self) -> None:
        self._op_outputs = {name for operator in self._net.op for name in operator.output}
        self._external_input_map = set(self._net.external_input)
        self._recreate_lookup_tables = False

    def BlobIsDefined(self, blob: Any) -> bool:
        """Return whether an operator of the net makes the blob, or it is an external input."""
        if self._recreate_lookup_tables:
            self._RecreateLookupTables()
        name = str(blob)
        return name in self._op_outputs or name in self._external_input_map

    def is_external_input(self, blob: Any) -> bool:
        """Return whether the blob is an external input."""
        if self._recreate_lookup_tables:
            self._RecreateLookupTables()
        return str(blob) in self._external_input_map

    def UsesBlob(self, blob: Any) -> bool:
        """Return whether the blob is an input, of an operator or of the net."""
        name = str(blob)
        return self.is_external_input(name) or any(
            name in operator.input for operator in self._net.op
        )

    def UsedBlobNames(self) -> set[str]:
        """List the names of all inputs and outputs."""
        return blob_names(self._net)

    def GetBlobRef(self, blob_name: Any) -> BlobReference:
        """Refer to a blob of the net. Raises EnforceNotMet, also a KeyError: there is none."""
        if not self.BlobIsDefined(blob_name):
            raise EnforceKeyError(
                f"Net {self.Name()!r} does not define blob {str(blob_name)!r}.",
                "Net.GetBlobRef",
                condition="BlobIsDefined(name)",
            )
        return BlobReference(str(blob_name), self)

    def NextBlob(self, prefix: Any = "unnamed") -> BlobReference:
        """Refer to a blob that the net does not have: `prefix`, or with ``_auto_N`` behind it.

        Each call gives another one.
        """
        base = BlobReference(prefix)
        blob, number = base, 0
        while str(blob) in self._registered_blob_names or self.BlobIsDefined(blob):
            blob = base + f"_auto_{number}"
            number += 1
        self._registered_blob_names.add(str(blob))
        return blob

    def NextScopedBlob(self, prefix: str = "unnamed") -> BlobReference:
        """Do as `NextBlob`, within the current name scope."""
        return self.NextBlob(ScopedName(prefix))

    def NextName(self, prefix: str | None = None, output_id: int | None = None) -> str:
        """Return a name for a blob, after the net and `prefix`; the old way, see `NextBlob`."""
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
        """Add external inputs; return a reference, or a list of several.

        Raises EnforceNotMet, also an AssertionError: none are given, or one is there already.
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
        """Add external outputs, given as references.

        Raises EnforceNotMet, also an AssertionError: no reference, or to a blob that is not the
        net's.
        """
        for output in outputs:
            if not isinstance(output, BlobReference) or not self.BlobIsDefined(output):
                raise EnforceAssertionError(
                    f"{output!r} is no BlobReference to a blob of net {self.Name()!r}: it is not "
                    "defined.",
                    "Net.AddExternalOutput",
                    condition="BlobIsDefined(output)",
                )
        self._net.external_output.extend([str(output) for output in outputs])

    def AddScopedExternalInputs(self, *inputs: Any) -> list[BlobReference]:
        """Add external inputs of the current name scope; return a list of references."""
        added = self.AddExternalInput(*[ScopedBlobReference(one) for one in inputs])
        return added if isinstance(added, list) else [added]

    def AddScopedExternalOutputs(self, *outputs: Any) -> None:
        """Add external outputs of the current name scope."""
        self.AddExternalOutput(*[ScopedBlobReference(one) for one in outputs])

    AddExternalInputs = AddExternalInput
    AddExternalOutputs = AddExternalOutput

    @property
    def external_inputs(self) -> list[BlobReference]:
        """The external inputs."""
        return [BlobReference(name) for name in self._net.external_input]

    @property
    def external_outputs(self) -> list[BlobReference]:
        """The external outputs."""
        return [BlobReference(name) for name in self._net.external_output]

    # What is remembered with a net.

    def add_attribute(self, name: str, obj: Any) -> None:
        """Remember `obj` under `name`, with what was remembered there before."""
        self._attr_dict[name].append(obj)

    def get_attributes(self, name: str) -> list[Any]:
        """List what was remembered under `name`."""
        return self._attr_dict.get(name, [])


def get_net_name(netlike: Any) -> Any:
    """Return the name of a Net or NetDef, and what else it is as it is."""
    if isinstance(netlike, Net):
        return netlike.Name()
    return netlike.name if kind_of(netlike) == "NetDef" else netlike


def output_to_list(op_output: Any) -> list[BlobReference]:
    """Return what adding an operator gave, one reference or several, as a list."""
    return [op_output] if isinstance(op_output, BlobReference) else list(op_output)
