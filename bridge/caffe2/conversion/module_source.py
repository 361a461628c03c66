# SPDX-License-Identifier: Apache-2.0
"""A net as Python: the source of one torch.nn.Module, and of the function that loads its weights.

The source is printed from the graph that torch exports, whose nodes know the operator of the net
that made them: variables and parameters have the names of the blobs.
"""

from __future__ import annotations

import keyword
import re
from collections import defaultdict
from collections.abc import Iterable

import torch

from bridge._version import __version__
from bridge.annotation import Any
from bridge.c10.errors import EnforceNotMet
from bridge.caffe2.conversion.net_programs import exported_with_steps
from bridge.caffe2.conversion.torch_calls import call_text, is_assertion, literal

_WIDTH = 100  # characters of a line
_NO_CHANGE = frozenset({"alias", "lift_fresh_copy", "reshape", "view"})
_INDENT = " " * 8


class ModuleSource:
    """The source of a module, `text`, and its tensors by the names of its attributes, `weights`.

    module: a NetModule. inputs: tensors of its inputs' sizes. title: the source of the net.
    Raises EnforceNotMet: torch cannot export the net.
    """

    def __init__(self, module: Any, inputs: tuple[Any, ...], title: str) -> None:
        program = exported_with_steps(module, inputs)
        self._program = program
        self._steps = {step.position: step for step in module._steps}
        self._nodes = list(program.graph.nodes)
        self._aliases: dict[Any, Any] = {}
        self._names: dict[Any, str] = {}
        self._holders: dict[str, Any] = {}
        self._lines: list[str] = []
        self.weights: dict[str, torch.Tensor] = {}
        self._buffers: set[str] = set()
        self._blob_names: dict[str, str] = {}
        self._class = _class_name(module.net.name)
        self._module = module
        self._bind_placeholders()
        self._fold()
        self._last = self._last_uses()
        self._write_forward()
        self.text = self._source(inputs, title)

    # The kinds of the placeholders of the graph.

    def _bind_placeholders(self) -> None:
        signature = self._program.graph_signature
        blob_of = {key: name for name, key in self._module._keys.items()}
        taken = {*dir(torch.nn.Module), "training", "F", "nn", "torch"}
        kinds = (
            (signature.inputs_to_parameters, False),
            (signature.inputs_to_buffers, True),
            (signature.inputs_to_lifted_tensor_constants, True),
        )
        self._parameters: list[str] = []
        for node in self._nodes:
            if node.op != "placeholder":
                continue
            for names, is_buffer in kinds:
                if node.name in names:
                    key = names[node.name]
                    name = _identifier(key, taken)
                    taken.add(name)
                    state = self._program.state_dict
                    self.weights[name] = (
                        state[key] if key in state else self._program.constants[key]
                    )
                    self._blob_names[name] = blob_of.get(key, "")
                    only_detached = bool(node.users) and all(
                        _name_of(user) == "detach" for user in node.users
                    )
                    if is_buffer or only_detached:
                        self._buffers.add(name)
                    self._names[node] = f"self.{name}"
                    break
        self._inputs: list[str] = []
        for node, blob in zip(
            [self._node(name) for name in signature.user_inputs],
            self._module.input_names,
            strict=True,
        ):
            name = _identifier(blob, {"self", "F", "nn", "torch", *self._inputs})
            self._inputs.append(name)
            self._names[node] = name
            self._holders[name] = node

    def _node(self, name: str) -> Any:
        return next(node for node in self._nodes if node.name == name)

    # Calls that need not be written, or are written with another one.

    def _fold(self) -> None:
        """Find nodes that change nothing, and FC as two nodes."""
        for node in self._nodes:
            if node.op != "call_function":
                continue
            name = _name_of(node)
            first = node.args[0] if node.args else None
            key = self._names.get(first, "").removeprefix("self.")
            unchanged = name in _NO_CHANGE and isinstance(first, torch.fx.Node)
            if (name == "detach" and key in self._buffers) or (unchanged and _same(node, first)):
                self._aliases[node] = first

    def _resolved(self, node: Any) -> Any:
        while node in self._aliases:
            node = self._aliases[node]
        return node

    def _is_inlined(self, node: Any) -> bool:
        """Whether a node has no line of its own: sizes, arithmetic on them, transposed weights."""
        if node.op != "call_function":
            return False
        if isinstance(node.meta.get("val"), (int, float, torch.SymInt, torch.SymFloat)):
            return True
        return _name_of(node) == "t" and all(
            _name_of(user) == "addmm" and user.args[2] is node for user in node.users
        )

    def _reads(self, node: Any) -> Iterable[Any]:
        """Yield the nodes with a name that the line of `node` refers to."""
        for one in node.all_input_nodes:
            one = self._resolved(one)
            if self._is_inlined(one):
                yield from self._reads(one)
            else:
                yield one

    def _last_uses(self) -> dict[Any, int]:
        last: dict[Any, int] = {}
        for position, node in enumerate(self._nodes):
            if node not in self._aliases and not self._is_inlined(node):
                for one in self._reads(node):
                    last[one] = position
        return last

    # The lines of forward.

    def _write_forward(self) -> None:
        place = f"{self._inputs[0]}.device"
        wanted = self._wanted_names()
        shown: int | None = None
        lines: list[str] = []
        for position, node in enumerate(self._nodes):
            if node.op in ("placeholder", "output") or node in self._aliases:
                continue
            if node.op != "call_function":
                raise EnforceNotMet(
                    f"The net has {node.op} {node.target}, which cannot be written as Python.",
                    "convert",
                )
            if self._is_inlined(node) or is_assertion(node.target):
                continue
            number = _step_of(node)
            if number is None or number != shown:
                self._group(lines, shown)
                lines, shown = [], number
            value = self._expression(node, place)
            if _name_of(node).endswith("_") and not _name_of(node).startswith("_"):
                # In place: its result is its first argument.
                self._aliases[node] = node.args[0]
                first = self._resolved(node)
                self._last[first] = max(self._last.get(first, 0), self._last.get(node, 0))
                lines.append(f"{_INDENT}{value}")
                continue
            name = self._new_name(wanted.get(node) or _base(node.name), position)
            self._names[node] = name
            self._holders[name] = node
            lines.append(f"{_INDENT}{name} = {value}")
        self._group(lines, shown)

    def _group(self, lines: list[str], number: int | None) -> None:
        """Add the lines of one operator of the net; it is named if they are several."""
        if len(lines) > 1 and number is not None:
            definition = self._steps[number].definition
            names = ", ".join(_plain(name) for name in definition.outputs)
            self._lines.append(f"{_INDENT}# {definition.type}: {names}")
        for line in lines:
            self._lines += _wrapped(line)

    def _wanted_names(self) -> dict[Any, str]:
        """Return the names of blobs for nodes that are read by other steps, or returned."""
        outside: dict[int, list[Any]] = defaultdict(list)
        for node in self._nodes:
            number = _step_of(node)
            if number is None or node in self._aliases or self._is_inlined(node):
                continue
            if any(_step_of(user) != number for user in self._users(node)):
                outside[number].append(node)
        read = {name for step in self._steps.values() for name in step.inputs}
        read.update(self._module.output_names)
        found: dict[Any, str] = {}
        for number, nodes in outside.items():
            names = [name for name in self._steps[number].outputs if name in read]
            if len(names) == len(nodes):
                found.update(zip(nodes, names, strict=True))
        return found

    def _users(self, node: Any) -> Iterable[Any]:
        for user in node.users:
            if user in self._aliases and self._resolved(user) is self._resolved(node):
                yield from self._users(user)
            else:
                yield user

    def _new_name(self, wanted: str, position: int) -> str:
        """Return a name for a variable; the name of a value that is not read any more is free."""
        taken = {"self", "F", "nn", "torch"}
        taken.update(
            name for name, node in self._holders.items() if self._last.get(node, -1) > position
        )
        return _identifier(wanted, taken)

    def _expression(self, node: Any, place: str) -> str:
        if _name_of(node) == "addmm" and not node.kwargs and len(node.args) == 3:
            bias, x, weight = (self._resolved(one) for one in node.args)
            if self._is_inlined(weight) and _name_of(weight) == "t":
                weight = self._resolved(weight.args[0])
                return f"F.linear({self._text(x)}, {self._text(weight)}, {self._text(bias)})"
        return call_text(node, self._text, place)

    def _text(self, value: Any) -> str:
        if isinstance(value, torch.fx.Node):
            value = self._resolved(value)
            if value in self._names:
                return self._names[value]
            return call_text(value, self._text, "")
        if isinstance(value, (list, tuple)):
            inner = ", ".join(self._text(one) for one in value)
            return f"({inner},)" if len(value) == 1 else f"({inner})"
        return literal(value)

    # The file.

    def _source(self, inputs: tuple[Any, ...], title: str) -> str:
        output = self._nodes[-1].args[0]
        values = ", ".join(self._text(one) for one in output)
        results = [_plain(name) for name in self._module.output_names]
        described = [
            f"{name}: {_plain(blob)}, sizes {self._sizes_text(name, x)}, {str(x.dtype)[6:]}"
            for name, blob, x in zip(self._inputs, self._module.input_names, inputs, strict=True)
        ]
        lines = [
            f'"""{title}, as a PyTorch module.',
            "",
            f"Written by bridge {__version__}, `bridge caffe2 convert`. It needs torch and "
            "safetensors.",
            '"""',
            "",
            "from pathlib import Path",
            "",
            "import torch",
            "import torch.nn.functional as F",
            "from safetensors.torch import load_file",
            "from torch import nn",
            "",
            "",
            f"class {self._class}(nn.Module):",
            f'    """{_plain(self._module.net.name) or "A net"}, computed as Caffe2 did.',
            "",
            *[f"    {line}" for line in described],
            f"    Returns {', '.join(results)}.",
            '    """',
            "",
            "    def __init__(self):",
            "        super().__init__()",
            *self._attributes(),
            "",
            f"    def forward(self, {', '.join(self._inputs)}):",
            *self._lines,
            *_wrapped(f"{_INDENT}return {values}"),
            "",
            "",
            "def load(path=None, trainable=False):",
            '    """Return the module with its weights, by default those beside this file."""',
            "    if path is None:",
            '        path = Path(__file__).with_name("weights.safetensors")',
            '    with torch.device("meta"):',
            f"        module = {self._class}()",
            "    module.load_state_dict(load_file(path), assign=True)",
            "    return module.requires_grad_(trainable).eval()",
        ]
        return "\n".join(lines) + "\n"

    def _sizes_text(self, name: str, x: torch.Tensor) -> str:
        node = self._holders.get(name)
        value = None if node is None else node.meta.get("val")
        sizes = list(x.shape) if value is None else list(value.shape)
        return (
            "(" + ", ".join("any" if isinstance(n, torch.SymInt) else str(n) for n in sizes) + ")"
        )

    def _attributes(self) -> list[str]:
        lines = []
        for name, tensor in self.weights.items():
            sizes = ", ".join(str(n) for n in tensor.shape) or "()"
            dtype = "" if tensor.dtype == torch.float32 else f", dtype={tensor.dtype}"
            empty = f"torch.empty({sizes}{dtype})"
            if name in self._buffers or not (tensor.is_floating_point() or tensor.is_complex()):
                self._buffers.add(name)
                line = f'{_INDENT}self.register_buffer("{name}", {empty})'
            else:
                line = f"{_INDENT}self.{name} = nn.Parameter({empty})"
            blob = self._blob_names[name]
            lines.append(line if blob in ("", name) else f"{line}  # {_plain(blob)}")
        return lines


def _step_of(node: Any) -> int | None:
    number = (node.meta.get("custom") or {}).get("caffe2")
    return number if isinstance(number, int) else None


def _name_of(node: Any) -> str:
    target = node.target
    return getattr(target, "__name__", str(target)).partition(".")[0]


def _base(name: str) -> str:
    """Return the name of a node without its number.

    >>> from bridge.caffe2.conversion.module_source import _base
    >>> _base("narrow_12"), _base("conv2d")
    ('narrow', 'conv2d')
    """
    return re.sub(r"(_\d+)+$", "", name) or name


def _same(node: Any, other: Any) -> bool:
    """Return whether two nodes have the same sizes and strides, whatever the batch is."""
    one, two = node.meta.get("val"), other.meta.get("val")
    if not isinstance(one, torch.Tensor) or not isinstance(two, torch.Tensor):
        return False
    return (
        one.dtype == two.dtype
        and len(one.shape) == len(two.shape)
        and all(str(a) == str(b) for a, b in zip(one.shape, two.shape, strict=True))
    )


def _identifier(text: str, taken: Iterable[str]) -> str:
    """Return a name of Python like `text` that is not taken.

    >>> from bridge.caffe2.conversion.module_source import _identifier
    >>> _identifier("conv1/7x7_s2", ()), _identifier("class", ()), _identifier("x", {"x"})
    ('conv1_7x7_s2', 'class_', 'x_2')
    """
    name = re.sub(r"\W|^(?=\d)", "_", text, flags=re.ASCII) or "_"
    if keyword.iskeyword(name):
        name += "_"
    taken = set(taken)
    found, number = name, 2
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found


def _class_name(text: str) -> str:
    """Return the name of a class: of words, each with a capital."""
    words = re.findall(r"[A-Za-z0-9]+", text)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return _identifier(name or "Net", ())


def _plain(text: str) -> str:
    """Return a blob's name as it can stand in a docstring or comment."""
    return re.sub(r"[^\x20-\x7e]|\\|\"\"\"", "?", text)


def _wrapped(line: str) -> list[str]:
    """Return a line, broken after the parenthesis that opens the last call if it is too long."""
    if len(line) <= _WIDTH or not line.endswith(")"):
        return [line]
    depth = 0
    for at in range(len(line) - 1, -1, -1):
        depth += (line[at] in ")]") - (line[at] in "([")
        if depth == 0:
            break
    indent = " " * (len(line) - len(line.lstrip()) + 4)
    inner = _split(line[at + 1 : -1])
    rows, row = [], ""
    for part in inner:
        if row and len(indent) + len(row) + len(part) + 3 > _WIDTH:
            rows.append(f"{indent}{row},")
            row = part
        else:
            row = f"{row}, {part}" if row else part
    return [line[: at + 1], *rows, f"{indent}{row}", f"{indent[4:]})"]


def _split(text: str) -> list[str]:
    """Split arguments at their commas."""
    parts, depth, begin = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(text[begin:at].strip())
            begin = at + 1
    return [*parts, text[begin:].strip()]
