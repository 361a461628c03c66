# SPDX-License-Identifier: Apache-2.0
"""Write the types of torch's methods and functions as at.Tensor and bridge.at have them.

    python tools/make_torch_stubs.py          write bridge/at/torch_{methods,functions,results}.pyi
    python tools/make_torch_stubs.py --check  exit with 1 if they differ from what it would write

The signatures are those of torch's own stubs, of the version that `constraints.txt` pins, with
at.Tensors as results, and tensors of the bridge or of torch as arguments. What torch itself does
not type stands in torch_untyped.pyi, with the types that its documentation gives.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).parents[1]
AT = ROOT / "bridge" / "at"
UNTYPED = ROOT / "tools" / "torch_untyped.pyi"
HEADER = """\
# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_torch_stubs.py from the stubs of torch {version}; do not edit.
# mypy: disable-error-code="overload-overlap, overload-cannot-match, misc, type-arg"
# pyright: reportOverlappingOverload=false, reportInconsistentOverload=false
"""

# The names of bridge.at, without the aliases that torch's stubs need.
IMPORTS = """\
import builtins
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Literal, TypeAlias, overload

import torch
from torch import Generator, memory_format, qscheme
from typing_extensions import Self

from bridge.at.tensor import Tensor
from bridge.at.torch_results import *
from bridge.c10.type_meta import TypeMeta
from bridge.typing import DeviceLike
from bridge.wrapper import Wrapper

# Methods and functions are named like the types: `bool`, `int`, `complex`.
_bool: TypeAlias = builtins.bool
_int: TypeAlias = builtins.int
_float: TypeAlias = builtins.float
_complex: TypeAlias = builtins.complex
_str: TypeAlias = builtins.str
_Number: TypeAlias = _int | _float | _bool
_Dtype: TypeAlias = torch.dtype | TypeMeta
_Device: TypeAlias = DeviceLike | _int
_TensorLike: TypeAlias = Wrapper | torch.Tensor

"""

# Not functions for users, but what torch's modules import for themselves.
SKIPPED = {
    "Optional", "boolean_dispatch", "classproperty", "get_file_path", "handle_torch_function",
    "has_torch_function", "has_torch_function_unary", "has_torch_function_variadic",
    "prepare_multiprocessing_environment", "profiler_allow_cudagraph_cupti_lazy_reinit_cuda12",
}  # fmt: skip
UNTYPED_ATTRIBUTES = {
    "is_xla": "_bool",
    "name": "_str | None",
    "grad_fn": "Any",
    "grad_dtype": "Any",
}

# A name in torch's annotations: what stands for it in an argument, and in a result.
NAMES = {
    "Tensor": ("_TensorLike", "Tensor"),
    "_dtype": ("_Dtype", "torch.dtype"),
    "dtype": ("_Dtype", "torch.dtype"),
    "DType": ("_Dtype", "torch.dtype"),
    "_device": ("_Device", "torch.device"),
    "device": ("_Device", "torch.device"),
    "Device": ("_Device | None", "torch.device"),
    "DeviceLikeType": ("_Device", "torch.device"),
    "_size": ("Sequence[_int]", "tuple[_int, ...]"),
    "Size": ("Sequence[_int]", "tuple[_int, ...]"),
    "SymInt": ("_int", "_int"),
    "int": ("_int", "_int"),
    "float": ("_float", "_float"),
    "bool": ("_bool", "_bool"),
    "complex": ("_complex", "_complex"),
    "str": ("_str", "_str"),
    "Number": ("_Number", "_Number"),
    "_layout": ("torch.layout", "torch.layout"),
    "_qscheme": ("qscheme", "qscheme"),
    "_Index": ("Any", "Any"),
    "NumPyArray": ("Any", "Any"),
    "ndarray": ("Any", "Any"),
    "Storage": ("Any", "Any"),
    "_Node": ("Any", "Any"),
    "BroadcastingList1": ("Any", "Any"),
    "BroadcastingList2": ("Any", "Any"),
    "_ratio_any_t": ("_float | Sequence[_float]", "Any"),
    "LinearCrossEntropyOptions": ("Any", "Any"),
    "Stream": ("Any", "Any"),
    "ScalingType": ("Any", "Any"),
    "SwizzleType": ("Any", "Any"),
    **{f"_size_{n}_t": ("_int | Sequence[_int]", "Any") for n in "123"},
    "_size_any_t": ("_int | Sequence[_int]", "Any"),
    **{
        f"_size_{n}_opt_t": ("_int | Sequence[_int | None] | None", "Any") for n in (*"123", "any")
    },
}  # fmt: skip
KNOWN = {
    "Any", "Callable", "EllipsisType", "Generator", "Iterable", "Iterator", "Literal", "None",
    "Self", "Sequence",
    "dict", "list", "memory_format", "object", "qscheme", "slice", "tuple", "type",
    "_bool", "_int", "_float", "_complex", "_str",
}  # fmt: skip


class Annotation(ast.NodeTransformer):
    """Rewrite one of torch's annotations; `result`: it is that of a result."""

    def __init__(self, result: bool, returns: dict[str, ast.ClassDef]) -> None:
        self.result = result
        self.returns = returns

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return what stands for a name."""
        if node.id in NAMES:
            return ast.parse(NAMES[node.id][self.result], mode="eval").body
        if node.id not in KNOWN:
            raise SystemExit(f"{node.id}: add it to NAMES or KNOWN of {__file__}")
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Return what stands for ``torch.X`` and ``torch.return_types.X``."""
        text = ast.unparse(node)
        if text.startswith("torch.return_types."):
            return ast.Name(f"{node.attr}_result")
        if node.attr in NAMES:
            return self.visit_Name(ast.Name(node.attr))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Let an argument be any sequence where torch writes a list; strings of Literal stay."""
        of = ast.unparse(node.value).rpartition(".")[2]
        if of == "Literal":
            return node
        inner = self.visit(node.slice)
        if of == "Optional":
            return ast.BinOp(inner, ast.BitOr(), ast.Constant(None))
        if of == "Union":
            parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _union(parts)
        of = {"List": "list", "Tuple": "tuple", "Dict": "dict"}.get(of, of)
        if of == "list" and not self.result:
            of = "Sequence"
        if of.startswith("BroadcastingList"):
            return ast.Name("Any")
        return ast.Subscript(ast.Name(of), inner)

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Return an annotation that is a string as what it says."""
        if not isinstance(node.value, str):
            return node
        return self.visit(ast.parse(node.value, mode="eval").body)


def _union(parts: list[ast.expr]) -> ast.expr:
    whole = parts[0]
    for part in parts[1:]:
        whole = ast.BinOp(whole, ast.BitOr(), part)
    return whole


def _members(node: ast.expr) -> list[ast.expr]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return [*_members(node.left), *_members(node.right)]
    return [node]


class Writer:
    """The text of stubs, from the syntax trees of torch's."""

    def __init__(self, returns: dict[str, ast.ClassDef]) -> None:
        self.returns = returns

    def annotation(self, node: ast.expr | None, result: bool) -> str:
        """Return the text of an annotation; Any where there is none."""
        if node is None:
            return "Any"
        rewritten = Annotation(result, self.returns).visit(node)
        members = list(dict.fromkeys(ast.unparse(one) for one in _members(rewritten)))
        if "Any" in members:
            return "Any"
        return " | ".join(members)

    def parameter(self, node: ast.arg, default: ast.expr | None, method: bool) -> str:
        """Return the text of one parameter."""
        if method and node.arg == "self":
            return "self"
        text = f"{node.arg}: {self.annotation(node.annotation, False)}"
        if default is None:
            return text
        constant = isinstance(default, ast.Constant) or (
            isinstance(default, ast.UnaryOp) and isinstance(default.operand, ast.Constant)
        )
        return f"{text} = {ast.unparse(default) if constant else '...'}"

    def function(
        self, node: ast.FunctionDef, overloaded: bool, indent: str, result: str | None
    ) -> str:
        """Return the stub of one function."""
        a = node.args
        plain = [*a.posonlyargs, *a.args]
        defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)
        parts = []
        for i, (one, default) in enumerate(zip(plain, defaults, strict=True)):
            parts.append(self.parameter(one, default, bool(indent)))
            if a.posonlyargs and i + 1 == len(a.posonlyargs):
                parts.append("/")
        if a.vararg:
            parts.append(f"*{a.vararg.arg}: {self.annotation(a.vararg.annotation, False)}")
        elif a.kwonlyargs:
            parts.append("*")
        parts.extend(
            self.parameter(one, default, False)
            for one, default in zip(a.kwonlyargs, a.kw_defaults, strict=True)
        )
        if a.kwarg:
            parts.append(f"**{a.kwarg.arg}: {self.annotation(a.kwarg.annotation, False)}")
        result = result or self.annotation(node.returns, True)
        decorator = f"{indent}@overload\n" if overloaded else ""
        return f"{decorator}{indent}def {node.name}({', '.join(parts)}) -> {result}: ...\n"

    def functions(
        self, nodes: list[ast.FunctionDef], indent: str = "", method: bool = False
    ) -> str:
        """Return the stubs of all overloads of one name."""
        name = nodes[0].name
        in_place = method and name.endswith("_") and not name.endswith("__")
        texts = [
            self.function(
                node,
                len(nodes) > 1,
                indent,
                "Self"
                if in_place and node.returns and ast.unparse(node.returns) == "Tensor"
                else None,
            )
            for node in nodes
        ]
        distinct = list(dict.fromkeys(texts))
        if len(distinct) == 1:
            distinct = [distinct[0].replace(f"{indent}@overload\n", "")]
        return "".join(distinct)


def _definitions(body: list[ast.stmt]) -> dict[str, list[ast.FunctionDef]]:
    found: dict[str, list[ast.FunctionDef]] = {}
    for node in body:
        if isinstance(node, ast.FunctionDef):
            found.setdefault(node.name, []).append(node)
    return found


def _stub(path: Path) -> list[ast.stmt]:
    return ast.parse(path.read_text("utf-8")).body


def _class(body: list[ast.stmt], name: str) -> ast.ClassDef:
    return next(one for one in body if isinstance(one, ast.ClassDef) and one.name == name)


def _names_of_stub(path: Path, name: str) -> set[str]:
    body = _class(_stub(path), name).body
    return {
        one.name if isinstance(one, ast.FunctionDef) else ast.unparse(one.target)
        for one in body
        if isinstance(one, (ast.FunctionDef, ast.AnnAssign))
    }


def _signature(function: Callable[..., object]) -> str:
    """Return the signature of a function; nothing if it is written in C."""
    try:
        return str(inspect.signature(function))
    except ValueError:
        return ""


def results(writer: Writer) -> str:
    """Return the named tuples that torch's functions return, of at.Tensors."""
    text = "from typing import NamedTuple\n\nfrom bridge.at.tensor import Tensor\n\n"
    text += f"__all__ = {[f'{name}_result' for name in writer.returns]}\n"
    for name, node in writer.returns.items():
        fields = [one for one in node.body if isinstance(one, ast.FunctionDef)]
        named = [
            f"    {one.name}: Tensor\n"
            for one in fields
            if one.decorator_list and ast.unparse(one.decorator_list[0]) == "property"
        ]
        text += f"\nclass {name}_result(NamedTuple):\n{''.join(named)}"
    return text


def methods(writer: Writer, torch_folder: Path) -> str:
    """Return the class of torch's methods that at.Tensor has."""
    from bridge.at import torch_names

    base = _class(_stub(torch_folder / "_C" / "__init__.pyi"), "TensorBase").body
    defined = _definitions(base)
    declared = {ast.unparse(one.target): one for one in base if isinstance(one, ast.AnnAssign)}
    by_hand = _definitions(_class(_stub(UNTYPED), "Methods").body)
    own = {
        *_names_of_stub(AT / "tensor.pyi", "Tensor"),
        *_names_of_stub(ROOT / "bridge" / "wrapper.pyi", "Wrapper"),
        *_names_of_stub(ROOT / "bridge" / "c10" / "handle.pyi", "Handle"),
    }
    text = "class TorchMethods:\n"
    for name in torch_names.ATTRIBUTES:
        if name in own:
            continue
        if name in UNTYPED_ATTRIBUTES:
            kind = UNTYPED_ATTRIBUTES[name]
        elif name in declared:
            kind = writer.annotation(declared[name].annotation, True)
        elif name in defined:
            kind = writer.annotation(defined[name][0].returns, True)
        else:
            kind = "Any"
        text += f"    @property\n    def {name}(self) -> {kind}: ...\n"
    for name in torch_names.METHODS:
        if name in own:
            continue
        if name in by_hand:
            text += textwrap.indent("\n".join(_texts_by_hand(by_hand[name])), "    ") + "\n"
        elif name in defined:
            text += writer.functions(defined[name], "    ", method=True)
        else:
            text += f"    def {name}(self, *args: Any, **kwargs: Any) -> Any: ...\n"
    return IMPORTS + text


def _texts_by_hand(nodes: list[ast.FunctionDef]) -> list[str]:
    return [ast.unparse(one).replace(":\n    ...", ": ...") for one in nodes]


def functions(writer: Writer, torch_folder: Path) -> str:
    """Return the functions of torch that bridge.at has."""
    import torch

    from bridge import at
    from bridge.at.torch_ops import functions as all_functions

    stubs = [
        _definitions(_stub(torch_folder / path))
        for path in ("_C/_VariableFunctions.pyi", "nn/functional.pyi", "_C/_nn.pyi")
    ]
    by_hand = _definitions(_stub(UNTYPED))
    text = ""
    exported = []
    for name, _ in sorted(all_functions(None)):  # type: ignore[arg-type]
        if name in at.__all__ or name in SKIPPED:
            continue
        exported.append(name)
        defined = next((stub[name] for stub in stubs if name in stub), [])
        if name in by_hand:
            text += "\n".join(_texts_by_hand(by_hand[name])) + "\n"
        elif defined:
            text += writer.functions(defined)
        elif re.search("_(ipu|xla)_", name):  # not in torch's stubs
            text += f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n"
        elif name in torch.__all__ and "Tensor" not in _signature(getattr(torch, name)):
            text += f"from torch import {name} as {name}\n"
        else:
            text += f"def {name}(*args: Any, **kwargs: Any) -> Any: ...\n"
    return IMPORTS + f"__all__ = {exported}\n\n" + text


def formatted(text: str) -> str:
    """Return `text` as ruff would write it, but for its lines' length."""
    return re.sub(r"\n{3,}", "\n\n", text)


def main(arguments: list[str]) -> int:
    """Write the stubs, or compare them; return the exit status."""
    sys.path.insert(0, str(ROOT))
    import torch

    pinned = re.search(r"^torch==([\d.]+)", (ROOT / "constraints.txt").read_text(), re.M)
    assert pinned is not None
    version = torch.__version__.partition("+")[0]
    if version != pinned[1]:
        print(f"torch is {version}; the stubs are those of {pinned[1]}", file=sys.stderr)
        return 2
    folder = Path(torch.__file__).parent
    returns = {
        one.name: one
        for one in _stub(folder / "return_types.pyi")
        if isinstance(one, ast.ClassDef) and not one.name.startswith("_")
    }
    writer = Writer(returns)
    header = HEADER.format(version=version)
    differing = []
    for path, text in (
        (AT / "torch_results.pyi", results(writer)),
        (AT / "torch_methods.pyi", methods(writer, folder)),
        (AT / "torch_functions.pyi", functions(writer, folder)),
    ):
        whole = formatted(header + text)
        if not path.exists() or path.read_text("utf-8") != whole:
            differing.append(path.name)
            if "--check" not in arguments:
                path.write_text(whole, "utf-8")
    for name in differing:
        print(f"bridge/at/{name}: {'differs' if '--check' in arguments else 'written'}")
    return int(bool(differing) and "--check" in arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
