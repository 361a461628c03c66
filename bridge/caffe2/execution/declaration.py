# SPDX-License-Identifier: Apache-2.0
"""Declaration: the schema and arguments of an operator, read from its function's signature.

Positional parameters are the inputs, keyword-only parameters the arguments, and the tensors that
are returned the outputs. From this come the schema, the values of the arguments with their
defaults, and the types that the inputs may have.

Note "Parameters that the engine fills"
A keyword-only parameter annotated with one of these names, of `function_operator`, is not an
argument of the operator:

| annotation | value |
|---|---|
| `Out` | the output's buffer, to write and to return (several: a tuple); None: new tensors. |
| | Where elements decide about sizes ("values"), it has those of an earlier run |
| `OutputCount` | the number of outputs that are wanted |
| `InPlace` | the outputs that are in place, {output: input} |
| `OperatorType` | the operator's type, for a function that is declared as several |
| `RandomGenerator` | a torch.Generator, or None for torch's own |
| `TargetDevice` | the torch.device that the operator runs on |

An input annotated with `Strings`, or `Tensor | Strings`, is a `Strings` where its elements are
strings. Other strings are represented by indices, of which 0 stands for the empty string.

A parameter annotated with a class that has an attribute `takes` stands for several arguments: its
value is an instance, made once from the `Arguments`, which it reads. `takes` lists those arguments
for torch, as in ``"int pad, int[] pads"``.
"""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Callable, Iterable, Mapping

from bridge.annotation import Any
from bridge.c10 import TypeMeta, float32
from bridge.c10.errors import EnforceNotMet, EnforceTypeError, EnforceValueError
from bridge.caffe2.definitions.argument_values import repeated_value, single_value
from bridge.caffe2.definitions.schemas import check_names, places_text, schema_of
from bridge.caffe2.execution.taped_operator import BoundCore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from bridge.caffe2.execution.definition import Definition

    # The types that an input may have: one of these, any (None), or as another input (str).
    InputTypes = Sequence[TypeMeta] | str | None

_FILLED = ("Out", "OutputCount", "InPlace", "OperatorType", "RandomGenerator", "TargetDevice")
_SINGLE = {"int": int, "float": float, "bool": bool, "str": str, "bytes": bytes}
_REPEATED = {f"list[{name}]": kind for name, kind in _SINGLE.items()}
_LIKE: dict[type, Any] = {int: 0, float: 0.0, bool: False, str: "", bytes: b""}
_PAIR = re.compile(r"(\d+)>(\d+)!?", re.ASCII)
_EFFECTS = {"errors", "io", "random", "state", "values"}
_REQUIRED = object()


class Arguments:
    """The arguments of a definition, for classes that several arguments describe.

    `type`: the operator's type. `inputs`: the number of inputs.
    """

    __slots__ = ("_values", "inputs", "type")

    def __init__(self, definition: Definition) -> None:
        self._values: Mapping[str, dict[str, Any]] = definition.arguments
        self.type: str = definition.type
        self.inputs = len(definition.inputs)

    def has(self, name: str) -> bool:
        """Return whether there is an argument `name`."""
        return name in self._values

    def fields(self, name: str) -> dict[str, Any]:
        """Return the fields of the Argument message `name` that are set, by their names."""
        return self._values.get(name, {})

    def single(self, name: str, default: Any = None) -> Any:
        """Return the value of an argument, as `Operator.GetSingleArgument`."""
        return single_value(self._values, name, default)

    def repeated(self, name: str, default: Sequence[Any] = ()) -> list[Any]:
        """Return the values of an argument as a list, as `Operator.GetRepeatedArgument`."""
        return repeated_value(self._values, name, default)


class Bound(BoundCore):
    """The function of an operator with the arguments of one definition.

    `arguments`: the keyword arguments. `types`: for each input the tuple of types that it may have,
    None for any, or the number of the input whose type it has. `on_host`: the inputs that are on
    the CPU wherever the operator runs; `across`: inputs that may be on another device of its type.
    `in_place`: {output: input}; `forced`: the pairs that must be in place, or None. `wants`: the
    names of the parameters that the engine fills, by their annotation; `out_name`: the name of the
    parameter for the buffer, or None. `is_recorded`: whether its calls may be recorded.
    """

    __slots__ = ()

    def __init__(
        self,
        declaration: Declaration,
        arguments: dict[str, Any],
        types: tuple[Any, ...],
        in_place: dict[int, int],
        on_host: frozenset[int],
        across: frozenset[int],
        outputs: int,
        has_seed: bool,
    ) -> None:
        self.declaration = declaration
        self.arguments = arguments
        self.types = types
        self.in_place = in_place
        places = schema_of(declaration.name).forced
        self.forced = {o: i for i, o in places if in_place.get(o) == i} or None
        self.on_host = on_host
        self.across = across
        self.wants = declaration.filled
        self.function = declaration.function
        if not declaration.is_built_in:
            self.function = _counted(declaration, outputs)
        self.is_filled = not declaration.filled.keys().isdisjoint(
            ("RandomGenerator", "TargetDevice")
        )
        self.reads_values = "values" in declaration.effects
        self.sized_by = tuple(i for i in sorted(declaration.sized_by) if i < len(types))
        self.out_name = declaration.filled.get("Out")
        self.has_strings = bool(declaration.strings)
        # Values that decide about errors only do not matter: `recorder` refuses to read them.
        writes_all = self.forced is not None and len(self.forced) == outputs
        harmless = {"errors", "values"} if writes_all else {"errors"}
        if not has_seed:  # torch's generator is drawn from at each call, recorded or not
            harmless.add("random")
        # Functions of users are called each time: they may have effects that nobody declared.
        self.is_recorded = declaration.effects <= harmless and declaration.is_built_in


def _counted(declaration: Declaration, outputs: int) -> Callable[..., Any]:
    """Return the function of a user for an operator with `outputs`, whose results are checked.

    It raises EnforceNotMet for another number of results, or None among them. A few outputs that an
    operator may do without, as in ``"1-2"``, may be returned always.
    """
    function = declaration.function
    allowed = schema_of(declaration.name).outputs
    few = 2**31 - 1 not in allowed

    @functools.wraps(function)
    def counted(*operands: Any, **arguments: Any) -> Any:
        returned = function(*operands, **arguments)
        if returned is None and not outputs:
            return returned
        several = returned if isinstance(returned, (tuple, list)) else (returned,)
        n = len(several)
        fits = n == outputs or (few and n > outputs and n in allowed)
        if not fits or any(one is None for one in several):
            kinds = ", ".join(type(one).__name__ for one in several)
            raise EnforceNotMet(
                f"The function returned {n} tensors ({kinds}), and the operator has {outputs} "
                "outputs. Return a torch.Tensor, or a numpy.ndarray of bytes, for each of them.",
                declaration.name,
            )
        return returned

    return counted


class _Argument:
    __slots__ = ("default", "group", "kind", "name", "optional", "repeated")

    def __init__(self, name: str, annotation: str, default: Any, names: Mapping[str, Any]) -> None:
        self.name = name
        self.default = default
        text = annotation
        self.optional = text.endswith("|None")
        text = text.removesuffix("|None")
        self.group = None
        self.repeated = text in _REPEATED
        self.kind = _REPEATED.get(text) or _SINGLE.get(text)
        if self.kind is None:
            self.group = names.get(text)
            if not hasattr(self.group, "takes"):
                raise EnforceTypeError(
                    f"Parameter {name!r} is annotated with {annotation!r}. An argument is an int, "
                    "float, bool, str, bytes or a list of these, as in list[int], or a class of "
                    "several, with the attribute takes.",
                    "operator",
                )

    @property
    def is_required(self) -> bool:
        """Whether there is no default."""
        return self.default is _REQUIRED

    def value(self, arguments: Arguments) -> Any:
        """Return the value of the argument, of the type of the parameter."""
        if self.group is not None:
            return self.group(arguments)
        if not arguments.has(self.name):
            if self.default is _REQUIRED:
                raise EnforceNotMet(f"The argument {self.name} is missing.")
            default = self.default
            return list(default) if self.repeated and default is not None else default
        assert self.kind is not None
        if self.repeated:
            return arguments.repeated(self.name, (_LIKE[self.kind],))
        return arguments.single(self.name, _LIKE[self.kind])


class Declaration:
    """An operator declared as a function; see the module.

    name: the operator type. function: computes the outputs from the inputs. The other parameters
    are as in `operator`.

    Raises EnforceNotMet, also a TypeError or ValueError: no operator can have the signature.
    """

    __slots__ = (
        "across",
        "arguments",
        "effects",
        "filled",
        "function",
        "inputs",
        "least",
        "most",
        "name",
        "on_host",
        "rearranges",
        "schema",
        "sized_by",
        "strings",
        "types",
        "variadic",
    )

    def __init__(
        self,
        name: str,
        function: Callable[..., Any],
        *,
        inplace: Any = None,
        types: Any = (float32,),
        inputs: str | None = None,
        outputs: str | int | None = None,
        effects: Iterable[str] = (),
        on_host: Iterable[str] = (),
        across: Iterable[str] = (),
        rearranges: Iterable[int] | dict[int, int] | str | None = None,
        sized_by: Iterable[str] = (),
        defaults: Callable[..., Any] | None = None,
    ) -> None:
        code = getattr(function, "__code__", None)
        if code is None:
            raise EnforceTypeError(
                f"An operator is a function of tensors, not {type(function).__name__}.", "operator"
            )
        self.name = name
        self.function = function
        names = code.co_varnames
        positional, keywords = code.co_argcount, code.co_kwonlyargcount
        self.inputs: tuple[str, ...] = names[:positional]
        self.variadic = bool(code.co_flags & 0x04)
        if code.co_flags & 0x08:
            raise EnforceTypeError(
                f"The function of {name!r} must name its arguments, not take any by **.",
                "operator",
            )
        if self.variadic:
            self.inputs += (names[positional + keywords],)
        self.filled: dict[str, str] = {}
        self.arguments = self._arguments(names[positional : positional + keywords], defaults)
        self.types = _types_by_input(types, self.inputs)
        self.effects = frozenset([effects] if isinstance(effects, str) else effects)
        if not self.effects <= _EFFECTS:
            raise EnforceValueError(
                f"{sorted(self.effects - _EFFECTS)} are not effects; those are {sorted(_EFFECTS)}.",
                "operator",
            )
        self.on_host = frozenset(map(self.inputs.index, on_host))
        self.across = frozenset(map(self.inputs.index, across))
        self.sized_by = frozenset(map(self.inputs.index, sized_by))
        plain = rearranges is None or isinstance(rearranges, (str, dict))
        self.rearranges: Any = rearranges if plain else frozenset(rearranges or ())
        annotations = function.__annotations__
        self.strings = frozenset(
            i for i, one in enumerate(self.inputs) if "Strings" in str(annotations.get(one))
        )
        required = positional - len(function.__defaults__ or ())
        self.least = required
        self.most = sys.maxsize if self.variadic else positional
        # The numbers of inputs and outputs, and the pairs in place, as `parse_schema` takes them.
        self.schema = (
            inputs or _count(required, None if self.variadic else positional),
            _outputs(outputs, annotations.get("return", "")),
            self._pairs(name, inplace),
        )

    @property
    def is_built_in(self) -> bool:
        """Whether the function is one of the bridge's own."""
        return bool(self.function.__module__.startswith("bridge.caffe2.operators."))

    def _pairs(self, name: str, inplace: Any) -> str:
        """Return the pairs of an input and an output that may be one blob, as in a schema."""
        text = places_text(inplace)
        for pair in text.split(",") if text else ():
            found = _PAIR.fullmatch(pair)
            if found is None:
                raise EnforceValueError(
                    f"{inplace!r} are not pairs of an input and an output, as in [(0, 0)].",
                    "operator",
                )
            if int(found[1]) >= self.most:
                raise EnforceValueError(
                    f"{name!r} has {self.most} inputs, so input {found[1]} cannot be output "
                    f"{found[2]} in place.",
                    "operator",
                )
        return text

    def _arguments(
        self, names: Sequence[str], source: Callable[..., Any] | None
    ) -> tuple[_Argument, ...]:
        """Return the arguments among the keyword-only parameters; the others go to `filled`."""
        function = self.function
        shared = getattr(source, "__kwdefaults__", None) or {}
        given = function.__kwdefaults__ or {}
        found = []
        for name in names:
            default = given.get(name, shared.get(name, _REQUIRED))
            annotation = _plain(function.__annotations__.get(name, _from_default(default)))
            kind = annotation.removesuffix("|None")
            if kind in _FILLED:
                self.filled[kind] = name
                continue
            if type(default) is float:
                default = float32_value(default)
            found.append(_Argument(name, annotation, default, function.__globals__))
        return tuple(found)

    def reads_values(self, count: int) -> bool:
        """Return whether an operator with `count` inputs returns or raises by elements' values."""
        return "errors" in self.effects or self.sizes_by_values(count)

    def sizes_by_values(self, count: int) -> bool:
        """Return whether elements may decide the sizes that one with `count` inputs returns."""
        return "values" in self.effects or any(i < count for i in self.sized_by)

    def kind_of(self, o: int, objects: Mapping[int, TypeMeta], count: int) -> TypeMeta | None:
        """Return the type of objects that the indices in output `o` represent; None: numbers.

        `objects`: the types of the inputs that hold objects. `count`: the number of inputs.
        """
        if self.rearranges == "same":
            return objects.get(o)
        if self.rearranges == "by input":
            return objects.get(o % count)
        if isinstance(self.rearranges, dict):
            return objects.get(self.rearranges.get(o, -1))
        if self.rearranges is not None and o not in self.rearranges:
            return None
        return objects[max(objects)]

    def bind(self, definition: Definition) -> Bound:
        """Return the function with the arguments of a definition.

        Raises EnforceNotMet: a wrong number of inputs or outputs, an output in place that must not
        be, a missing argument, or one of another type (also a TypeError).
        """
        in_place = check_names(definition.type, definition.inputs, definition.outputs) or {}
        arguments = Arguments(definition)
        values = {argument.name: argument.value(arguments) for argument in self.arguments}
        count = len(definition.inputs)
        if not self.least <= count <= self.most:
            raise EnforceNotMet(
                f"{definition.type} is given {count} inputs, and takes {', '.join(self.inputs)}; "
                f"the first {self.least} of them are required.",
                "CreateOperator",
            )
        types, on_host = self.types, self.on_host
        if self.variadic:
            last = len(self.inputs) - 1
            types = types[:last] + _types_in_turn(types[last], last, count)
            if last in on_host:
                on_host = on_host | frozenset(range(last, count))
        if "OutputCount" in self.filled:
            values[self.filled["OutputCount"]] = len(definition.outputs)
        if "InPlace" in self.filled:
            values[self.filled["InPlace"]] = in_place
        if "OperatorType" in self.filled:
            values[self.filled["OperatorType"]] = self.name
        has_seed = definition.random_seed is not None
        outputs = len(definition.outputs)
        return Bound(self, values, types[:count], in_place, on_host, self.across, outputs, has_seed)


def _plain(annotation: Any) -> str:
    """Return an annotation as text, such as ``list[int]`` for ``typing.Sequence[int]``."""
    if not isinstance(annotation, str):
        simple = isinstance(annotation, type) and not hasattr(annotation, "__args__")
        annotation = annotation.__name__ if simple else str(annotation)
    text = re.sub(r"\s|\b(?:typing|collections\.abc|torch)\.", "", annotation)
    text = re.sub(r"^Optional\[(.*)\]$", r"\1|None", text)
    text = re.sub(r"^(?:List|Sequence|Iterable)\[", "list[", text)
    text = re.sub(r"^(?:tuple|Tuple)\[(int|float|bool|str|bytes),\.\.\.\]", r"list[\1]", text)
    return re.sub(r"^Tuple\[", "tuple[", text)


def _from_default(default: Any) -> str:
    """Return the annotation of a parameter that has none: the type of its default."""
    if isinstance(default, (list, tuple)) and default:
        return f"list[{type(default[0]).__name__}]"
    return type(default).__name__


def float32_value(value: float) -> float:
    """Return `value` rounded to float32, the type of Caffe2's arguments."""
    from ctypes import c_float

    return c_float(value).value


def _types_by_input(types: Any, inputs: tuple[str, ...]) -> tuple[Any, ...]:
    """Return for each input a tuple of types, None for any, or the number of another input."""
    if types is None:
        return (None,) * len(inputs)
    if isinstance(types, TypeMeta):
        types = (types,)
    if not isinstance(types, dict):
        allowed = tuple(map(TypeMeta.Make, types))
        others = allowed if len(allowed) == 1 else 0
        return (allowed, *([others] * (len(inputs) - 1)))[: len(inputs)]
    unknown = set(types) - set(inputs)
    if unknown:
        raise EnforceValueError(
            f"There are types for {sorted(unknown)}; the inputs are {list(inputs)}.", "operator"
        )
    return tuple(_types_of(types.get(name, (float32,)), inputs) for name in inputs)


def _types_in_turn(types: Any, first: int, count: int) -> tuple[Any, ...]:
    """Return the types of the inputs from `first` on, of a parameter that takes any number."""
    if not isinstance(types, list):
        return (types,) * max(count - first, 0)
    found = []
    for i in range(count - first):
        allowed = types[i % len(types)]
        is_same = i >= len(types) and allowed is not None and len(allowed) > 1
        found.append(first + i % len(types) if is_same else allowed)
    return tuple(found)


def _types_of(types: Any, inputs: tuple[str, ...]) -> Any:
    if isinstance(types, list):
        return [_types_of(one, inputs) for one in types]
    if isinstance(types, str) and types in inputs:
        return inputs.index(types)
    if types is None:
        return None
    if isinstance(types, TypeMeta):
        return (types,)
    return tuple(map(TypeMeta.Make, types))


def _count(least: int, most: int | None) -> str:
    if most is None:
        return f"{least}-*"
    return str(least) if least == most else f"{least}-{most}"


def _outputs(given: str | int | None, annotation: Any) -> str:
    """Return the number of outputs as text, from the annotation of the result unless `given`."""
    if given is not None:
        return str(given)
    text = _plain(annotation)
    if not text:
        return "1-*"
    if text in ("None", "NoneType"):
        return "0"
    several = re.fullmatch(r"(?:tuple|list)\[(.*)\]", text)
    if several is None:
        return "1"
    if several[1].endswith("...") or text.startswith("list"):
        return "1-*"
    return str(len(several[1].split(",")))
