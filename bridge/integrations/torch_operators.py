# SPDX-License-Identifier: Apache-2.0
"""``torch.ops._caffe2``: operators that are declared as functions, as operators of torch.

``torch.ops._caffe2.FC(x, w, b, axis=1)`` takes the inputs, several in the place of ``*xs`` as a
list, and the arguments by name, and returns the outputs; a list of them if their number varies, and
then it is the argument `outputs` where the operator has to know it. Nothing is in place. An
operator is registered when it is first asked for, by its declaration at that time. torch sees the
calls in it, so gradients, export and compilation need nothing else.

Those that PyTorch 1.8.1 had take its parameters, in their order, so TorchScript files that call
them run; see `torch_listed`. Operators that are classes run on blobs, without gradients.
"""

from __future__ import annotations

import functools
import math
import re
import threading

import torch

from bridge.annotation import Any

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from bridge.caffe2.execution.declaration import Bound, Declaration

_NAME = "_caffe2"
_COUNT = "outputs"  # the argument for the number of outputs


class _Namespace(torch._ops._OpNamespace):
    """Registers an operator when it is looked up for the first time."""

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            from bridge.caffe2.definitions.operator_types import is_registered

            declaration = _declaration(name)
            with _lock:
                if name in _registered:
                    pass
                elif _is_listed(name) and is_registered(name):
                    _register_listed(name, declaration)
                elif declaration is not None:
                    _register(declaration)
        return super().__getattr__(name)

    def __dir__(self) -> list[str]:
        """Return the names of the operators too."""
        from bridge.caffe2.definitions.operator_types import RegisteredOperators

        operators = [
            name for name in RegisteredOperators() if _is_listed(name) or _declaration(name)
        ]
        return [*super().__dir__(), *operators]


_registered: set[str] = set()
_lock = threading.RLock()


def register() -> None:
    """Put the namespace into torch.ops."""
    if not isinstance(vars(torch.ops).get(_NAME), _Namespace):
        setattr(torch.ops, _NAME, _Namespace(_NAME))


def _declaration(name: str) -> Declaration | None:
    """Return the declaration of an operator; None: there is none, or it is a class."""
    from bridge.caffe2.definitions.operator_types import classes_of

    for cls in (classes_of(name) or {}).values():
        found: Declaration | None = getattr(cls, "_declaration", None)
        if found is not None:
            return found
    return None


@functools.cache
def _library() -> Any:
    library: Any = torch.library.Library
    return library(_NAME, "FRAGMENT")


def _is_listed(name: str) -> bool:
    """Return whether PyTorch 1.8.1 had the operator in `torch.ops`."""
    from bridge.integrations.torch_schemas import SCHEMAS

    return name in SCHEMAS


def _register(declaration: Declaration) -> None:
    name = declaration.name
    arguments = _arguments(declaration)
    _define(name, _schema(declaration, arguments), _Implementation(name, arguments))


def _register_listed(name: str, declaration: Declaration | None) -> None:
    from bridge.integrations.torch_listed import ListedOperator

    if declaration is None:
        listed = ListedOperator(name, (), {}, functools.partial(_run_on_blobs, name))
    else:
        kinds = {one: kind.removesuffix("?") for one, (kind, _) in _arguments(declaration).items()}
        run = functools.partial(_run_function, name)
        listed = ListedOperator(name, declaration.inputs, kinds, run)
    _define(name, listed.schema, listed)


def _define(name: str, schema: str, implementation: Callable[..., Any]) -> None:
    _registered.add(name)  # first, since torch looks the name up while it defines it
    try:
        _library().define(schema)
        _library().impl(name, implementation, "CompositeImplicitAutograd")
    except BaseException:
        _registered.discard(name)
        raise


def _arguments(declaration: Declaration) -> dict[str, tuple[str, Any]]:
    """Return the types and defaults of the arguments; the default ... is none."""
    found: dict[str, tuple[str, Any]] = {}
    for one in declaration.arguments:
        if one.group is not None:
            for text in getattr(one.group, "takes", "").split(", "):
                kind, _, name = text.partition(" ")
                if name:
                    found.setdefault(name, (f"{kind}?", None))
            continue
        assert one.kind is not None
        kind = one.kind.__name__.replace("bytes", "str") + ("[]" if one.repeated else "")
        if one.is_required:
            found[one.name] = (kind, ...)
        elif isinstance(one.default, (bool, int, str)) or (
            isinstance(one.default, float) and math.isfinite(one.default)
        ):
            found[one.name] = (kind, one.default)
        else:
            found[one.name] = (f"{kind}?", None)
    if "OutputCount" in declaration.filled:
        given = (declaration.function.__kwdefaults__ or {}).get(declaration.filled["OutputCount"])
        found[_COUNT] = ("int", given or _least_outputs(declaration))
    return found


def _outputs(declaration: Declaration) -> str:
    """Return the number of outputs, as in the schema."""
    return declaration.schema[1]


def _least_outputs(declaration: Declaration) -> int:
    return int(re.split(r"[-|]", _outputs(declaration))[0])


def _schema(declaration: Declaration, arguments: dict[str, tuple[str, Any]]) -> str:
    parts = []
    for i, name in enumerate(declaration.inputs):
        if declaration.variadic and i == len(declaration.inputs) - 1:
            parts.append(f"Tensor[] {name}")
        else:
            parts.append(f"Tensor {name}" if i < declaration.least else f"Tensor? {name}=None")
    required = [f"{kind} {name}" for name, (kind, default) in arguments.items() if default is ...]
    if required and len(declaration.inputs) > declaration.least and not declaration.variadic:
        parts.append("*")  # none without default may follow the optional inputs
    parts += required
    for name, (kind, default) in arguments.items():
        if default is not ...:
            text = f'"{default}"' if isinstance(default, str) else repr(default)
            parts.append(f"{kind} {name}={text}")
    count = _outputs(declaration)
    outputs = "Tensor[]"
    if count.isdecimal():
        outputs = "Tensor" if count == "1" else f"({', '.join(['Tensor'] * int(count))})"
    return f"{declaration.name}({', '.join(parts)}) -> {outputs}"


class _Implementation:
    """Calls the function of an operator, as torch calls one, by the latest declaration."""

    def __init__(self, name: str, arguments: dict[str, tuple[str, Any]]) -> None:
        self._name = name
        self._defaults = {name: default for name, (_, default) in arguments.items()}
        required = [name for name, default in self._defaults.items() if default is ...]
        optional = [name for name, default in self._defaults.items() if default is not ...]
        self._order = [*required, *optional]
        self._bound: Callable[..., Bound] = functools.lru_cache(256)(_bound)

    def __call__(self, *given: Any, **arguments: Any) -> Any:
        declaration = _declaration(self._name)
        assert declaration is not None
        count = len(declaration.inputs)
        inputs = list(given[:count])
        inputs += [arguments.pop(name, None) for name in declaration.inputs[len(inputs) :]]
        arguments.update(zip(self._order, given[count:], strict=False))
        if declaration.variadic:
            inputs += inputs.pop() or []
        while inputs and inputs[-1] is None:
            inputs.pop()
        wanted = arguments.pop(_COUNT, None)
        outputs = self._defaults.get(_COUNT) if wanted is None else wanted
        settings = [
            (name, *_hashable(value))
            for name, value in arguments.items()
            if value is not None and value != self._defaults.get(name)
        ]
        bound = self._bound(declaration, len(inputs), outputs, tuple(settings))
        values = dict(bound.arguments)
        if wanted is None and "is_test" in values and _COUNT in self._defaults:
            values[bound.wants["OutputCount"]] = 0  # the mode decides how many there are
        found = _call(bound, inputs, values)
        if _outputs(declaration) == "1":
            return found[0] if isinstance(found, (tuple, list)) else found
        found = found if isinstance(found, (tuple, list)) else [found]
        if _outputs(declaration).isdecimal():
            return tuple(found)
        return [one for one in found[:outputs] if one is not None]


def _call(bound: Bound, inputs: list[Any], values: dict[str, Any]) -> Any:
    """Call the function of an operator on tensors, on their device."""
    from bridge.caffe2.execution.net_function import check_types, row_major

    check_types(bound, inputs)
    if "TargetDevice" in bound.wants:
        device = next((one.device for one in inputs if one is not None), torch.device("cpu"))
        values[bound.wants["TargetDevice"]] = device
    return bound.function(*map(row_major, inputs), **values)


def _run_function(
    name: str, inputs: list[Any], arguments: dict[str, Any], outputs: int
) -> list[Any]:
    """Return the outputs of an operator that is declared as a function."""
    declaration = _declaration(name)
    assert declaration is not None
    settings = tuple((one, *_hashable(value)) for one, value in arguments.items())
    bound = _bound(declaration, len(inputs), outputs, settings)
    found = _call(bound, inputs, dict(bound.arguments))
    return list(found) if isinstance(found, (tuple, list)) else [found]


def _run_on_blobs(
    name: str, inputs: list[Any], arguments: dict[str, Any], outputs: int
) -> list[Any]:
    """Return the outputs of an operator that is a class, which runs in a workspace of its own."""
    from bridge.caffe2.workspaces.workspace import Workspace
    from bridge.front import to_torch

    workspace = Workspace()
    settings = [(key, value, type(value)) for key, value in arguments.items()]
    message = _message(name, len(inputs), outputs, settings)
    for one, tensor in zip(message.input, inputs, strict=True):
        workspace.feed_blob(one, tensor.detach().contiguous())
    workspace.run(message)
    tensors: list[Any] = [workspace._blobs[one]._tensor for one in message.output]
    return [to_torch(one) for one in tensors]


def _hashable(value: Any) -> tuple[Any, type]:
    """Return a value, a tuple for a list, and the type, since 1 equals 1.0 and True."""
    if isinstance(value, list):
        return tuple(value), type(value[0]) if value else list
    return value, type(value)


def _bound(
    declaration: Declaration,
    inputs: int,
    outputs: int | None,
    settings: tuple[tuple[str, Any, type], ...],
) -> Bound:
    """Return the function with these arguments, for these numbers of inputs and outputs."""
    from bridge.caffe2.execution.definition import Definition

    if outputs is None:
        outputs = _least_outputs(declaration)
    return declaration.bind(Definition(_message(declaration.name, inputs, outputs, settings)))


def _message(
    name: str, inputs: int, outputs: int, settings: Iterable[tuple[str, Any, type]]
) -> Any:
    """Return the OperatorDef with these arguments and numbers of inputs and outputs."""
    from bridge.caffe2.base.messages import caffe2_pb2
    from bridge.caffe2.definitions.argument_values import MakeArgument
    from bridge.caffe2.definitions.schemas import schema_of

    message = caffe2_pb2().OperatorDef(type=name)
    message.input.extend(f"input {i}" for i in range(inputs))
    names = [f"output {o}" for o in range(outputs)]
    schema = schema_of(name)
    for shift in schema.forced_shifts:
        names = [f"input {o + shift}" for o in range(outputs)]
    for i, o in schema.forced:
        if i < inputs and o < outputs:
            names[o] = f"input {i}"
    message.output.extend(names)
    message.arg.extend(
        MakeArgument(key, list(value) if isinstance(value, tuple) else value)
        for key, value, _ in settings
    )
    return message
