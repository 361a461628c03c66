# SPDX-License-Identifier: Apache-2.0
"""`operator`: declares an operator as a function of tensors.

The gradient of one that declares none is autograd's, by `FunctionGradient`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

from bridge import c10
from bridge.c10 import TypeMeta
from bridge.caffe2.base.messages import caffe2_pb2
from bridge.caffe2.blobs.string_arrays import Strings
from bridge.caffe2.execution.declaration import Declaration
from bridge.caffe2.execution.definition import Definition
from bridge.caffe2.execution.function_core import FunctionCore
from bridge.caffe2.execution.operator import Operator
from bridge.caffe2.execution.registry import register_operator

TYPE_CHECKING = False
if TYPE_CHECKING:
    from bridge.caffe2.gradients.maker import GradientMaker

Function = TypeVar("Function", bound=Callable[..., Any])

# Annotations of parameters that the engine fills; see the Note of `declaration`.
Out = Any
OutputCount = int
InPlace = dict[int, int]
OperatorType = str
RandomGenerator = Any
TargetDevice = Any


def operator(
    name: str,
    *,
    inplace: Any = None,
    gradient: Any = None,
    types: Any = (c10.float32,),
    inputs: str | None = None,
    outputs: str | int | None = None,
    effects: Iterable[str] = (),
    devices: Any = ("cpu", "cuda"),
    on_host: Iterable[str] = (),
    across: Iterable[str] = (),
    rearranges: Iterable[int] | dict[int, int] | str | None = None,
    sized_by: Iterable[str] = (),
    defaults: Callable[..., Any] | None = None,
    engine: str = "",
) -> Callable[[Function], Function]:
    """Return a decorator that declares a function of torch tensors as the operator `name`.

    The function's positional parameters are the inputs: torch tensors over the memory of the blobs,
    not to be written. Those with the default None are optional; ``*xs`` takes any number. Its
    keyword-only parameters are the arguments, with their types (int, float, bool, str, bytes,
    list[...]) and defaults; one without a default is required. The returned tensors are the
    outputs, as many as the annotation says: ``-> Tensor``, ``-> tuple[Tensor, Tensor]``; strings
    are returned as a numpy.ndarray of bytes. The Note of `declaration` has the parameters that the
    engine fills, such as ``out: Out = None``, the output's buffer.

    - inplace: pairs (input, output) that may be one blob, or their text, such as ``"0>0,1>0!"``,
      where ``!`` says that they must be.
    - gradient: the gradient operators as a pattern, such as ``"$Gradient o0 g0 > 0"``, where ``$``
      is `name` (see `bridge.caffe2.gradients.patterns`), ``"none"`` for inputs without gradients,
      or a function as `GradientRegistry.RegisterGradient` takes. Without it, the gradient that is
      registered there, else torch's autograd, which computes the function once more.
    - types: the element types of the inputs, float32 by default: a tuple for all of them (of
      several, all inputs have the same), None for any type, or a dict by the inputs' names; those
      that it leaves out are float32. Its values may name another input that has the same type; an
      input ``*xs`` that names itself has one type, any; a list for ``*xs`` has the types in turn.
    - inputs, outputs: their numbers, such as ``"1-3"``, where the signature does not say them.
    - effects: besides returning tensors: "io", "random", "state", "values" if the elements decide
      about sizes or errors, or "errors" if about errors alone.
    - on_host: inputs that are on the CPU wherever the operator runs. across: inputs that may be on
      another device of the operator's type.
    - rearranges: the outputs with elements of the inputs of any type, all by default; strings are
      then represented by indices. A dict says for each output of which input; ``"same"``: of the
      one with the same number; ``"by input"``: likewise, modulo the number of inputs.
    - sized_by: inputs of a few elements, which decide the sizes of the outputs.
    - defaults: a function whose defaults apply to arguments of the same names, as for a gradient
      operator.
    - devices, engine: as in `register_operator`.

    The decorator returns the function unchanged. Raises EnforceNotMet, also a TypeError or
    ValueError: no operator can have the signature, or as `register_operator`.

    >>> import numpy as np
    >>> from bridge import caffe2
    >>> from bridge.caffe2 import core, workspace
    >>> @caffe2.operator("ScaledSum", inplace=[(0, 0)])
    ... def scaled_sum(x: "Tensor", y: "Tensor", *, scale: float = 1.0) -> "Tensor":
    ...     return scale * (x + y)
    >>> [workspace.FeedBlob(name, np.array([1.0, 2.0], np.float32)) for name in "xy"]
    [True, True]
    >>> op = core.CreateOperator("ScaledSum", ["x", "y"], ["x"], scale=0.25)
    >>> workspace.RunOperatorOnce(op), workspace.FetchBlob("x").tolist()
    (True, [0.5, 1.0])
    >>> workspace.ResetWorkspace()
    True
    """

    def declare(function: Function) -> Function:
        declaration = Declaration(
            name,
            function,
            inplace=inplace,
            types=types,
            inputs=inputs,
            outputs=outputs,
            effects=effects,
            on_host=on_host,
            across=across,
            rearranges=rearranges,
            sized_by=sized_by,
            defaults=defaults,
        )
        default = gradient
        if gradient is None and not declaration.is_built_in:
            default = autograd_of(declaration)
        members = {
            "__doc__": function.__doc__,
            "__module__": function.__module__,
            "__qualname__": function.__qualname__,
            "_declaration": declaration,
            "_has_effects": bool(declaration.effects & {"io", "state"}),
        }
        inputs_text, outputs_text, places = declaration.schema
        register_operator(
            name,
            devices,
            engine,
            inputs=inputs_text,
            outputs=outputs_text,
            inplace=places,
            gradient=default,
        )(type(name, (FunctionOperator,), members))
        return function

    return declare


class FunctionOperator(FunctionCore, Operator):
    """The base class of operators that are declared as functions; see `operator`."""

    writes_last = True
    _declaration: Declaration

    @classmethod
    def check(cls, definition: Definition) -> Any:
        """Return the function with the arguments of the definition, a `Bound`."""
        return cls._declaration.bind(definition)

    def _generator(self) -> Any:
        """Return the generator seeded for this operator, or None for torch's default one."""
        seed = self._definition.random_seed
        if seed is None:
            return None
        import torch

        generator = torch.Generator(self._torch_device())
        generator.manual_seed(seed)
        return generator

    def _torch_device(self) -> Any:
        import torch

        return torch.device(str(self._definition.device))

    def _compute_objects(self) -> None:
        """Compute outputs from inputs of strings or other objects, which indices represent."""
        import torch

        from bridge.caffe2.blobs.torch_io import operand

        declaration = self._declaration
        items: list[Any] = [b""]  # so that 0 stands for the empty string
        operands: list[Any] = []
        objects: dict[int, Any] = {}
        taken: set[int] = set()  # the memory of inputs and earlier outputs
        for i in range(self.InputSize()):
            tensor = self.Input(i)
            dtype = tensor.dtype()
            if not dtype or dtype.is_pod:
                operands.append(operand(tensor))
                taken.add(operands[-1].untyped_storage().data_ptr())
                continue
            objects[i] = dtype
            given = tensor.data(dtype)[:]
            sizes = torch.Size(tensor.sizes())
            if i in declaration.strings:
                operands.append(Strings(sizes, given))
                continue
            start = len(items)
            items += given
            operands.append(torch.arange(start, len(items), device="cpu").view(sizes))
        arguments = dict(self._definition.checked.arguments)
        if "TargetDevice" in declaration.filled:
            arguments[declaration.filled["TargetDevice"]] = self._torch_device()
        function = self._definition.checked.function
        results = self._checked_results(function(*operands, **arguments))
        for o, result in enumerate(results):
            kind = None
            if not declaration.strings:
                kind = declaration.kind_of(o, objects, self.InputSize())
            if isinstance(result, Strings):
                self._put_objects(o, result.shape, result.items, c10.string)
            elif result is not None and kind is not None:
                found = [items[place] for place in result.reshape(-1).tolist()]
                self._put_objects(o, result.shape, found, kind)
            elif result is not None:
                memory = result.untyped_storage().data_ptr()
                self._put_tensor(o, result.clone() if memory in taken else result)
                taken.add(memory)

    def _put_objects(self, o: int, sizes: Iterable[int], items: list[Any], kind: Any) -> None:
        output = self.Output(o)
        output.Resize(list(sizes))
        output.mutable_data(kind)[:] = items

    def _put_strings(self, o: int, strings: Any) -> None:
        """Set output `o` to a numpy.ndarray of bytes."""
        self._put_objects(o, strings.shape, strings.reshape(-1).tolist(), c10.string)


_FLOATS = tuple(map(TypeMeta.Make, (c10.float16, c10.float32, c10.float64)))


def autograd_of(declaration: Declaration) -> Callable[[GradientMaker], None]:
    """Return the gradient of an operator that computes its function again, with autograd.

    A gradient that is registered for the type comes before it.
    """

    def by_autograd(maker: GradientMaker) -> None:
        op = maker.op
        maker.enforce(
            not declaration.effects & {"random", "state", "io"}
            and "RandomGenerator" not in declaration.filled,
            "cannot be computed by its function, which does not compute the same twice; declare it",
        )
        maker.enforce(
            not set(op.input) & set(op.output),
            "needs the inputs, and the operator works in place of one; use another output, or "
            "declare the gradient",
        )
        given = [o for o, one in enumerate(maker.output_gradients) if one is not None]
        wanted = [i for i in range(len(op.input)) if _is_real(declaration, i)]
        if not given or not wanted:
            return
        forward = caffe2_pb2().NetDef()
        forward.op.add().CopyFrom(op)
        names = [maker.I(i) for i in range(len(op.input))] + [maker.GO(o) for o in given]
        maker.add(
            "FunctionGradient",
            names,
            [maker.GI(i) for i in wanted],
            {"forward": forward, "given": given, "wanted": wanted},
            copied=False,
        )

    by_autograd.yields = True  # type: ignore[attr-defined]
    return by_autograd


def _is_real(declaration: Declaration, i: int) -> bool:
    """Return whether input `i` may be of floating-point numbers."""
    types = declaration.types[min(i, len(declaration.types) - 1)]
    while type(types) is int and types != i:
        i, types = types, declaration.types[types]
    if isinstance(types, list):  # the types in turn
        types = types[(i - len(declaration.types) + 1) % len(types)]
    return types is None or type(types) is int or any(one in _FLOATS for one in types)
