# SPDX-License-Identifier: Apache-2.0
"""Calls of torch's operators, from an exported graph, as the Python that a person would write.

An operator without a form of its own here becomes ``torch.ops.aten.name.overload(…)``, which is
less pretty, and right.
"""

from __future__ import annotations

import operator
from collections.abc import Callable

import torch

from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet

# A function that returns the text of an argument: of a node, a list, a number, a type.
Text = Callable[[Any], str]

_BINARY = ("add", "sub", "mul", "div", "eq", "ne", "lt", "le", "gt", "ge")
_SIGNS = ("+", "-", "*", "/", "==", "!=", "<", "<=", ">", ">=")
_INFIX = {
    **{
        f"{name}.{kind}": sign
        for name, sign in zip(_BINARY, _SIGNS, strict=True)
        for kind in ("Tensor", "Scalar")
    },
    "pow.Tensor_Scalar": "**",
    **dict.fromkeys(("matmul.default", "mm.default", "bmm.default"), "@"),
}
_NUMBERS: dict[Any, str] = {
    operator.add: "+",
    operator.sub: "-",
    operator.mul: "*",
    operator.floordiv: "//",
    operator.mod: "%",
    operator.truediv: "/",
    operator.pow: "**",
}
# Functions of torch.nn.functional that take the arguments of the operator in its order.
_FUNCTIONAL = frozenset(
    {
        *("conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d"),
        *("max_pool1d", "max_pool2d", "max_pool3d", "avg_pool1d", "avg_pool2d", "avg_pool3d"),
        *("adaptive_avg_pool1d", "adaptive_avg_pool2d", "adaptive_avg_pool3d"),
        *("relu", "elu", "gelu", "silu", "leaky_relu", "hardtanh", "softplus", "linear"),
        *("softmax", "log_softmax", "layer_norm", "pixel_shuffle", "logsigmoid", "prelu", "selu"),
    }
)
_METHODS = frozenset(
    {
        *("reshape", "view", "permute", "transpose", "unsqueeze", "squeeze", "expand", "narrow"),
        *("contiguous", "flatten", "select", "clone", "detach", "t", "new_ones", "new_zeros"),
        *("new_full", "new_empty", "index_select", "repeat", "flip", "view_as", "expand_as"),
    }
)
# torch has the function by the name of the operator, with its arguments.
_TORCH = frozenset(
    {
        *("abs", "acos", "arange", "argmax", "argmin", "argsort", "asin", "atan", "baddbmm", "cat"),
        *("ceil", "clamp", "cos", "cosh", "cumsum", "einsum", "erf", "exp", "eye", "floor", "full"),
        *("gather", "index_add", "isnan", "log", "log1p", "logical_and", "logical_not"),
        *("logical_or", "logical_xor", "max", "maximum", "mean", "min", "minimum", "neg", "norm"),
        *("ones", "ones_like", "pow", "prod", "reciprocal", "round", "rsqrt", "scatter", "sigmoid"),
        *("scatter_add", "sign", "sin", "sinh", "sort", "split", "sqrt", "square", "stack", "sum"),
        *("take_along_dim", "tan", "tanh", "topk", "tril", "triu", "trunc", "unbind", "var"),
        *("var_mean", "where", "zeros", "zeros_like", "addmm", "group_norm", "add", "sub", "mul"),
        *("div", "remainder", "floor_divide", "fmod", "index_fill", "masked_fill", "expm1"),
        *("embedding_bag", "movedim", "native_batch_norm", "native_layer_norm"),
    }
)
# Lists of equal numbers under these names may be one number.
_SPATIAL = frozenset({"kernel_size", "stride", "padding", "dilation", "output_padding"})
_ASSERTIONS = frozenset(
    {"_assert_tensor_metadata", "_assert_scalar", "sym_constrain_range", "_assert_async"}
)
# Arguments of methods that are understood by their names only.
_ALWAYS_NAMED = frozenset({"alpha", "device", "dtype"})
# Where a tensor is made: it goes where the inputs are, in plain memory.
_PLACE = frozenset({"layout", "pin_memory", "device"})


def is_assertion(target: Any) -> bool:
    """Return whether an operator computes nothing."""
    name = getattr(target, "__name__", str(target))
    return name.partition(".")[0] in _ASSERTIONS or name == "sym_constrain_range_for_size"


def literal(value: Any) -> str:
    """Return a constant argument as Python.

    >>> import torch
    >>> from bridge.caffe2.conversion.torch_calls import literal
    >>> literal(torch.float32), literal(float("inf")), literal(2.0)
    ('torch.float32', 'float("inf")', '2.0')
    """
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        return f'float("{value}")'
    if isinstance(value, torch.device):
        return repr(str(value))
    return str(value) if isinstance(value, (torch.dtype, torch.memory_format)) else repr(value)


def call_text(node: Any, text: Text, place: str) -> str:
    """Return the call of a node of an exported graph as an expression.

    text: returns the text of an argument. place: the text of the device that new tensors go to.
    Raises EnforceNotMet: it is not an operator of torch.
    """
    target, args = node.target, node.args
    if target is operator.getitem:
        return f"{text(args[0])}[{text(args[1])}]"
    if target is operator.neg:
        return f"-{text(args[0])}"
    if target is torch.sym_float:
        return f"float({text(args[0])})"
    if target in _NUMBERS:
        return f"({text(args[0])} {_NUMBERS[target]} {text(args[1])})"
    namespace = getattr(target, "namespace", "")
    if namespace not in ("aten", "prims"):
        raise EnforceNotMet(
            f"{target} is not an operator of torch; the net cannot be written as Python.", "convert"
        )
    given = _arguments(node)
    if any(name in given for name in _PLACE):
        given = {name: value for name, value in given.items() if name not in _PLACE}
        given["device"] = _Verbatim(place)
    name, overload = target.__name__.partition(".")[::2]
    shape = _SHAPES.get(name)
    if shape is not None:
        found = shape(given, text)
        if found is not None:
            return found
    full = f"{name}.{overload}"
    if full in _INFIX and len(given) == 2:
        left, right = given.values()
        return f"{_one(left, text)} {_INFIX[full]} {_one(right, text)}"
    if name == "mT":
        return f"{text(args[0])}.mT"
    if name == "sym_size":
        return f"{text(args[0])}.shape[{text(args[1])}]"
    if name.endswith("_") and not name.startswith("_"):
        return _method(name, given, text)
    if name in _METHODS:
        return _method(name, given, text)
    if name in _FUNCTIONAL:
        return f"F.{name}({_listed(given, text)})"
    if name in _TORCH:
        return f"torch.{name}({_listed(given, text)})"
    return f"{target.__module__}.{full}({_listed(given, text)})".replace(
        f"{target.__module__}.", f"torch.ops.{namespace}."
    )


class _Verbatim:
    """A text that is an argument as it is."""

    def __init__(self, value: str) -> None:
        self.value = value


def _arguments(node: Any) -> dict[str, Any]:
    """Return the arguments of a node by name, without those that have their defaults."""
    schema = node.target._schema.arguments
    found: dict[str, Any] = {}
    for i, parameter in enumerate(schema):
        if i < len(node.args):
            value = node.args[i]
        elif parameter.name in node.kwargs:
            value = node.kwargs[parameter.name]
        else:
            continue
        if not (parameter.has_default_value() and _is_default(value, parameter.default_value)):
            found[parameter.name] = value
    return found


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, (list, tuple)) and isinstance(default, int):  # one number for all
        return bool(value) and all(type(n) is int and n == default for n in value)
    if isinstance(value, (list, tuple)) and isinstance(default, (list, tuple)):
        return all(type(n) is int for n in value) and list(value) == list(default)
    return type(value) is type(default) and bool(value == default)


def _one(value: Any, text: Text) -> str:
    return value.value if isinstance(value, _Verbatim) else text(value)


def _listed(given: dict[str, Any], text: Text) -> str:
    """Return the text of arguments: tensors and the first ones by position, the rest by name."""
    parts = []
    by_name = False
    for i, (name, value) in enumerate(given.items()):
        if (
            name in _SPATIAL
            and isinstance(value, (list, tuple))
            and len(value) > 1
            and all(type(n) is int and n == value[0] for n in value)
        ):
            value = value[0]
        by_name = by_name or (i > 0 and not _is_plain(name, value))
        shown = _one(value, text)
        parts.append(f"{_KEYWORDS.get(name, name)}={shown}" if by_name else shown)
    return ", ".join(parts)


# The names in torch's functions of arguments that operators call `self`.
_KEYWORDS = {"self": "input"}


def _is_plain(name: str, value: Any) -> bool:
    """Return whether an argument is understood without its name."""
    return isinstance(value, torch.fx.Node) and name not in ("dim", "alpha", "value")


def _method(name: str, given: dict[str, Any], text: Text) -> str:
    first, *rest = given.items()
    parts = [_one(value, text) for key, value in rest if key not in _ALWAYS_NAMED]
    parts += [f"{key}={_one(value, text)}" for key, value in rest if key in _ALWAYS_NAMED]
    return f"{text(first[1])}.{name}({', '.join(parts)})"


def _batch_norm(given: dict[str, Any], text: Text) -> str:
    parts = [text(given.get(key)) for key in ("input", "running_mean", "running_var")]
    parts += [
        f"{key}={text(given[key])}" for key in ("weight", "bias") if given.get(key) is not None
    ]
    if given["training"]:
        parts += ["training=True", f"momentum={text(given['momentum'])}"]
    parts.append(f"eps={text(given['eps'])}")
    return f"F.batch_norm({', '.join(parts)})"


def _dropout(given: dict[str, Any], text: Text) -> str:
    return f"F.dropout({text(given['input'])}, {text(given['p'])}, training={given['train']})"


def _pad(given: dict[str, Any], text: Text) -> str:
    value = f", value={text(given['value'])}" if given.get("value") else ""
    return f"F.pad({text(given['self'])}, {text(given['pad'])}{value})"


def _slice(given: dict[str, Any], text: Text) -> str:
    dim = given.get("dim", 0)
    if dim < 0:
        return f"torch.ops.aten.slice.Tensor({', '.join(text(one) for one in given.values())})"
    begin = given.get("start")
    end = given.get("end")
    bounds = f"{text(begin) if begin else ''}:{'' if end is None or _is_end(end) else text(end)}"
    if given.get("step", 1) != 1:
        bounds += f":{text(given['step'])}"
    return f"{text(given['self'])}[{':, ' * dim}{bounds}]"


def _is_end(value: Any) -> bool:
    return isinstance(value, int) and value >= 2**63 - 1


def _to(given: dict[str, Any], text: Text) -> str | None:
    if set(given) <= {"self", "dtype", "copy"} and "dtype" in given:
        copy = ", copy=True" if given.get("copy") else ""
        return f"{text(given['self'])}.to({text(given['dtype'])}{copy})"
    return None


def _concatenated(given: dict[str, Any], text: Text) -> str:
    dim = f", dim={text(given['dim'])}" if "dim" in given else ""
    return f"torch.cat([{', '.join(text(one) for one in given['tensors'])}]{dim})"


def _normalized(given: dict[str, Any], text: Text) -> str:
    parts = [text(given["input"]), text(given["normalized_shape"])]
    parts += [f"{key}={text(given[key])}" for key in ("weight", "bias", "eps") if key in given]
    return f"F.layer_norm({', '.join(parts)})"


# Operators whose Python has other arguments, or another order.
_SHAPES: dict[str, Callable[[dict[str, Any], Text], str | None]] = {
    "batch_norm": _batch_norm,
    "cat": _concatenated,
    "constant_pad_nd": _pad,
    "dropout": _dropout,
    "layer_norm": _normalized,
    "slice": _slice,
    "to": _to,
}
