# SPDX-License-Identifier: Apache-2.0
"""Write the stub beside each .pyx from the annotations that stand in it.

    python tools/make_stubs.py          write them
    python tools/make_stubs.py --check  exit with 1 if they differ from what it would write

A function, method or property is part of the stub if its result is annotated or of a C type
(cpdef), a field if it is public or readonly, a name of the module if its type is said. The C type
of a parameter counts as its annotation. Types that are more exact than those of C stand behind::

    cdef public dict sizes  # pyi: dict[str, int]
    ROWS = []  # pyi: list[TypeMeta]
    cpdef object export_array(TensorImpl impl, str caller):  # pyi: np.ndarray[Any, Any]

An overload stands above its function, with its first parameters; the others are the function's::

    # pyi: overload (x: TensorLike) -> torch.Tensor
    def to_torch(x: Any, *, copy: bool | None = None) -> Any:

What else Cython cannot say in code, such as attributes that are set in C, stands in comments
``# pyi: ...``, which become lines of the stub at their place. A module without any of these is for
C only: it has no stub, unless Python imports its classes.
Imports are found by the names that the annotations use: they are those of the .pyx, or in NAMES.

A module in Python whose names all come from a table, ``lazily(__name__, {...})`` of bridge.lazy,
has a stub with the imports of that table.
"""

from __future__ import annotations

import ast
import builtins
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEADER = "# SPDX-License-Identifier: Apache-2.0\n# Written by tools/make_stubs.py; do not edit.\n"

# Where names of annotations come from that the modules do not import themselves.
NAMES = {
    name: place
    for place, names in {
        "": "builtins cupy jax torch weakref",
        "bridge.at.torch_methods": "TorchMethods",
        "bridge.c10.array_ref": "ArrayRef",
        "bridge.c10.attribute": "CallableAttribute",
        "bridge.c10.device": "Device DeviceType",
        "bridge.c10.options": "TensorOptions",
        "bridge.c10.storage": "Storage",
        "bridge.c10.type_meta": "TypeMeta",
        "bridge.caffe2.blobs.blob": "Blob",
        "bridge.caffe2.blobs.core": "BlobCore",
        "bridge.caffe2.execution.blob_table": "BlobTable",
        "bridge.caffe2.execution.operator": "Operator",
        "bridge.caffe2.execution.operator_core": "DefinitionCore OperatorCore",
        "bridge.see.contexts": "Audit NoCopy",
        "bridge.see.explain": "Explanation Explanations",
        "bridge.typing": (
            "ArrayLike BufferLike Deleter DeviceLike Dims IndexLike Operand OptionsLike TensorLike "
            "TypeLike"
        ),
        "collections.abc": "Callable Iterable Iterator Mapping Sequence",
        "contextlib": "AbstractContextManager",
        "numpy.typing": "NDArray",
        "typing": "Any ClassVar Generic Literal NoReturn SupportsIndex TypeVar final overload",
        # of typing itself in newer Pythons
        "typing_extensions": "CapsuleType Never Self TypeIs disjoint_base",
    }.items()
    for name in names.split()
}
NAMES |= {"np": "numpy as np", "tf": "tensorflow as tf"}
C_TYPES = {
    **dict.fromkeys(("int", "long", "Py_ssize_t", "size_t", "uintptr_t"), "int"),
    **{f"{sign}int{bits}_t": "int" for sign in ("", "u") for bits in (8, 16, 32, 64)},
    "bint": "bool",
    "double": "float",
    "float": "float",
    "dict": "dict[Any, Any]",
    "list": "list[Any]",
    "set": "set[Any]",
    "tuple": "tuple[Any, ...]",
    "type": "type[Any]",
}
# Elements of memoryviews, which take NumPy's arrays.
ELEMENTS = {"float": "float32", "double": "float64", "int": "int32", "int64_t": "int64"}
NEVER = "    def __init__(self, never: Never, /, *args: Never, **kwargs: Never) -> None: ...\n"
# Methods in slots of C, whose arguments have no names.
_ARITHMETIC = "add sub mul matmul truediv floordiv mod divmod pow and or xor lshift rshift"
SLOTS = {
    *(f"__{prefix}{name}__" for name in _ARITHMETIC.split(" ") for prefix in ("", "r", "i")),
    *(f"__{name}__" for name in ("eq", "ne", "lt", "le", "gt", "ge", "get", "set", "contains")),
    *("__format__", "__exit__"),
    *(f"__{kind}{name}__" for name in ("item", "attr") for kind in ("get", "set", "del")),
}
# What Cython calls the methods of the buffer protocol, and Python.
BUFFERS = {
    "__getbuffer__": "__buffer__(self, flags: int, /) -> memoryview",
    "__releasebuffer__": "__release_buffer__(self, buffer: memoryview, /) -> None",
}
DEF = re.compile(r"( *)(?:def|cpdef (?P<result>\w+)) (?P<name>\w+)\(")
FIELD = re.compile(r"    cdef (public|readonly) (\w+) (\w+)(?:.*# pyi: (.*))?")
CLASS = re.compile(r"(cdef )?class (\w+)\s*(?:\(([^)]*)\))?\s*(?:\[[^\]]*\])?:")
DECORATOR = re.compile(r" *@(property|staticmethod|classmethod|\w+\.setter)$")
COMMENT = re.compile(r"( *)# pyi: ?(.*)$")
AGAIN = re.compile(r"    (\w+) = (\w+)$")
CONSTANT = re.compile(r"(\w+) = .*# pyi: (.+)$")
OVERLOAD = re.compile(r"overload \((.*)\) -> (.*)")
VALUE = re.compile(r"    (\w+ = (?:-?\d+|\"[^\"]*\"))$")
IMPORT = re.compile(
    r"^from[ ]+([\w.]+)[ ]+c?import[ ]+(?:\(([^)]*)\)|([^\n(#]+))|^import[ ]+([^\n#]+)", re.M
)
PARAMETER = re.compile(
    r"(?:(?:const )?(?P<ctype>[A-Za-z_][\w.]*)(?P<view>\[[^\]]*\])? +)?(?P<name>\*{0,2}\w+)"
    r"(?P<none> (?:not|or) None)?(?: *: *(?P<note>[^=]+?))?(?: *= *(?P<default>.+))?"
)


def closing(text: str, start: int) -> int:
    """Return the position of the bracket that closes the one at `start`."""
    depth = 0
    for match in re.compile(r"[\[({]|[\])}]|\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*").finditer(text, start):
        if match[0] in "[({":
            depth += 1
        elif match[0] in "])}":
            depth -= 1
            if depth == 0:
                return match.start()
    raise SystemExit(f"no bracket closes {text[start : start + 80]!r}")


def parted(text: str) -> list[str]:
    """Return what commas outside of brackets separate."""
    parts, depth, start = [], 0, 0
    for match in re.finditer(r"[\[({]|[\])}]|,|\"[^\"\n]*\"|'[^'\n]*'", text):
        depth += (match[0] in "[({") - (match[0] in "])}")
        if match[0] == "," and not depth:
            parts.append(text[start : match.start()])
            start = match.end()
    return [part for part in (" ".join(one.split()) for one in [*parts, text[start:]]) if part]


def parameter(text: str, first: bool) -> str:
    """Return the text of a parameter of a stub; `first`: it may be ``self``."""
    if text in ("/", "*") or (first and text.split()[-1] in ("self", "cls")):
        return text.split()[-1]
    match = PARAMETER.fullmatch(text)
    if match is None:
        raise SystemExit(f"{text!r} is not understood as a parameter")
    note, default = match["note"], match["default"]
    if note is None and match["ctype"] not in (None, "object"):
        note = C_TYPES.get(match["ctype"], match["ctype"])
        if match["view"]:
            note = f"NDArray[np.{ELEMENTS[match['ctype']]}]"
        note += " | None" if default == "None" or match["none"] == " or None" else ""
    if note is None:
        note = "Any"
    if default is None:
        return f"{match['name']}: {note}"
    try:
        ast.literal_eval(default)
    except (ValueError, SyntaxError):
        default = "..."
    return f"{match['name']}: {note} = {default}"


def behind(parameters: list[str], given: list[str]) -> list[str]:
    """Return the parameters of a function behind as many as an overload names."""
    n = len([one for one in given if one not in ("/", "*")])
    names = [i for i, one in enumerate(parameters) if one not in ("/", "*")]
    return parameters[names[n - 1] + 1 :] if n <= len(names) else []


def type_of(ctype: str) -> str:
    """Return the annotation of a C type."""
    return "Any" if ctype == "object" else C_TYPES.get(ctype, ctype)


def fields_of(text: str) -> dict[str, str]:
    """Return for each class of a .pxd or .pyx the stub's lines of its fields."""
    found: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if start := CLASS.match(line):
            name = start[2]
        elif line[:1].strip() and not line.startswith(("#", "@", ")")):
            name = ""
        elif name and (field := FIELD.match(line)):
            kind, ctype, field_name, said = field.groups()
            note = said or type_of(ctype)
            lines = f"    {field_name}: {note}\n"
            if kind == "readonly":
                lines = f"    @property\n    def {field_name}(self) -> {note}: ...\n"
            found[name] = found.get(name, "") + lines
    return found


def solid_classes(text: str) -> set[str]:
    """Return the classes whose instances have fields in C that those of their bases have not.

    These are the disjoint bases. A class without a base has a field if it has methods in C.
    """
    found = set()
    name, has_base = "", False
    for line in re.sub(r"#[^\n]*", "", text).splitlines():
        if start := CLASS.match(line):
            name, has_base = start[2], bool(start[3])
        elif line[:1].strip() and not line.startswith(("@", ")")):
            name = ""
        elif name and re.match(r"    cdef \w", line) and not (has_base and "(" in line):
            found.add(name)
    return found


class Stub:
    """The lines of a stub, taken from the text of a .pyx; fields, solid: of its classes."""

    def __init__(self, text: str, fields: dict[str, str], solid: set[str]) -> None:
        self.text = text
        self.fields = fields
        self.solid = solid
        self.first = ""  # imports and type variables
        self.body = ""  # outside of classes, and finished classes
        self.header = ""  # of the current class
        self.inside = ""  # the current class
        self.name = ""
        self.is_empty = True  # there are no more than headers of classes
        self.decorators: list[str] = []
        self.overloads: list[tuple[list[str], str]] = []  # of the next function
        self.above = ""  # comments that belong to the next class
        self.is_c = True

    def add(self, line: str) -> None:
        """Add a line to the current class, or outside of one."""
        if line.startswith(" "):
            self.inside += line
        else:
            self.body += line
            self.is_empty = False

    def begin_class(self, name: str, bases: str) -> None:
        """Set the header of a class; private classes of C have none and are left out."""
        above, self.above = self.above, ""
        if self.is_c and name.startswith("_"):
            return
        if name in self.solid and "@final" not in above:
            above = f"@disjoint_base\n{above}"
        self.name = name
        self.header = above if "class " in above else f"{above}class {name}{bases}:\n"
        self.header = self.header.rstrip("\n")
        if f"\nforbid_calling({name})" in self.text:
            self.inside = NEVER

    def end_class(self) -> None:
        """Add the current class to the body, if anything of it is part of the stub."""
        self.is_empty = self.is_empty and not self.inside
        said = set(re.findall(r"    (?:def )?(\w+)(?=[(:])", self.inside))
        for field in re.findall(r"(?:    @property\n)?    .*\n", self.fields.get(self.name, "")):
            if re.search(r"(\w+)[(:]", field)[1] not in said:  # type: ignore[index]
                self.inside += field
        if self.inside:
            self.body += f"\n{self.header}\n{self.inside}\n"
        elif self.header:
            self.body += f"\n{self.header} ...\n"
        self.header = self.inside = self.name = ""

    def function(self, match: re.Match[str], position: int) -> None:
        """Add the function whose ``def`` matched, if its result is annotated."""
        name, result = match["name"], match["result"]
        if name in BUFFERS:
            self.add(f"{match[1]}def {BUFFERS[name]}: ...\n")
            return
        opening = position + match.end() - 1
        end = closing(self.text, opening)
        tail = self.text[end + 1 : self.text.index("\n", end)]
        decorators, self.decorators = self.decorators, []
        overloads, self.overloads = self.overloads, []
        if name == "__init__" and self.text.startswith(":\n        raise TypeError", end + 1):
            self.inside += NEVER
        inner = parted(re.sub(r"#[^\n]*", "", self.text[opening + 1 : end]))
        own = inner[:1] if match[1] and "@staticmethod" not in decorators else []
        rest = inner[len(own) :]
        for given, said in overloads:
            self.write(["@overload"], match[1], name, [*own, *given, *behind(rest, given)], said)
        if result is not None:
            said = re.search(r"# pyi: (.*)", tail)
            result = said[1] if said else type_of(result)
        elif said := re.match(r"\s*->\s*([^#]+?)\s*:\s*(?:#|$)", tail):
            result = said[1]
        if result is None or (match["result"] and f"# pyi: def {name}(" in self.text):
            return
        if overloads:
            decorators.insert(0, "@overload")
        ignored = re.search(r"  # type: ignore\S*", tail)
        self.write(decorators, match[1], name, inner, result, ignored[0] if ignored else "")

    def write(
        self,
        decorators: list[str],
        indent: str,
        name: str,
        inner: list[str],
        result: str,
        ignored: str = "",
    ) -> None:
        """Add a function with these parameters."""
        parameters = [
            parameter(one, bool(indent) and not i and "@staticmethod" not in decorators)
            for i, one in enumerate(inner)
        ]
        if indent and self.is_c and name in SLOTS:
            parameters.append("/")
        for one in decorators:
            self.add(f"{indent}{one}\n")
        self.add(f"{indent}def {name}({', '.join(parameters)}) -> {result}: ...{ignored}\n")

    def read(self) -> str:
        """Return the stub without its imports."""
        position = 0
        for line in self.text.splitlines(keepends=True):
            bare = line.rstrip("\n")
            if comment := COMMENT.match(bare):
                self.comment(comment)
            elif start := CLASS.match(bare):
                self.end_class()
                self.is_c = bool(start[1])
                self.begin_class(start[2], f"({start[3]})" if start[3] else "")
            elif bare[:1].strip() and not bare.startswith(("#", "@", ")")):
                self.end_class()
            if bare == "@cython.final":
                self.above = f"@final\n{self.above}"
            elif constant := CONSTANT.match(bare):
                self.add(f"{constant[1]}: {constant[2]}\n")
            if DECORATOR.match(bare):
                self.decorators.append(bare.strip())
            elif start := DEF.match(bare):
                if not start[1] or (len(start[1]) == 4 and self.header):
                    self.function(start, position)
                self.decorators = []
            elif self.header and not self.is_c and (value := VALUE.match(bare)):
                self.inside += f"    {value[1]}\n"
            elif (again := AGAIN.match(bare)) and f"def {again[2]}(" in self.inside:
                self.inside += f"    {bare.strip()}\n"
            position += len(line)
        self.end_class()
        return self.first + self.body

    def comment(self, match: re.Match[str]) -> None:
        """Add a line that a comment holds; those above a class are its header."""
        indent, line = match.groups()
        if overload := OVERLOAD.match(line):
            self.overloads.append((parted(overload[1]), overload[2]))
        elif indent:
            self.inside += f"    {line}\n"
        elif re.match(r"class |@(?!overload)", line) and not line.endswith("..."):
            self.above += f"{line}\n"
        elif line.startswith(("from ", "import ")) or "TypeVar(" in line:
            self.first += f"{line}\n"
        else:
            self.end_class()
            self.body += f"{line}\n"
            self.is_empty = False


def imported(text: str) -> dict[str, str]:
    """Return the import statement for each name that a .pyx imports or cimports."""
    found = {}
    for module, many, few, whole in IMPORT.findall(text):
        for one in parted(re.sub(r"#[^\n]*", "", many or few or whole)):
            name = one.split(" as ")[-1].strip()
            found[name] = f"from {module} import {one}" if module else f"import {one}"
    return found


def imports(body: str, text: str, path: Path) -> str:
    """Return the import statements that the body of a stub needs."""
    tree = ast.parse(body)
    defined = {
        name.id
        for node in tree.body
        if isinstance(node, (ast.Assign, ast.AnnAssign))
        for name in ast.walk(node.target if isinstance(node, ast.AnnAssign) else node.targets[0])
        if isinstance(name, ast.Name)
    }
    defined |= {one.name for one in tree.body if isinstance(one, (ast.ClassDef, ast.FunctionDef))}
    defined |= {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, (ast.ImportFrom, ast.Import))
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef):  # one method under two names
            again = {ast.unparse(one.value) for one in node.body if isinstance(one, ast.Assign)}
            methods = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
            defined |= again & methods
    used = {
        node.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    } - defined
    known = imported(text)
    statements = set()
    for name in used:
        if name in NAMES:
            place = NAMES[name]
            plain = " as " in place or not place
            statements.add(f"import {place or name}" if plain else f"from {place} import {name}")
        elif name in known:
            statements.add(known[name])
        elif not hasattr(builtins, name):
            raise SystemExit(f"{path}: {name} is not imported; add it to NAMES of {__file__}")
    return "".join(f"{one}\n" for one in sorted(statements))


def stubs_of(sources: list[Path]) -> dict[Path, str]:
    """Return the stub for each .pyx, by its path from the root, that is not for C only."""
    made, for_c = {}, {}
    for path in sources:
        text = path.read_text()
        declared = path.with_suffix(".pxd")
        header = declared.read_text() if declared.exists() else ""
        fields = fields_of(text) | fields_of(header)
        stub = Stub(text, fields, solid_classes(header) | solid_classes(text))
        body = stub.read()
        place = path.with_suffix(".pyi").relative_to(ROOT)
        whole = f"{HEADER}{imports(body, text, path)}\n{body}"
        if not stub.is_empty:
            made[place] = whole
        elif body:
            for_c[place] = whole
    python = "".join(path.read_text() for path in (ROOT / "bridge").rglob("*.py"))
    while wanted := {
        place
        for place in for_c
        if f"from {'.'.join(place.with_suffix('').parts)} import" in python + "".join(made.values())
    }:
        made |= {place: for_c.pop(place) for place in wanted}
    return made


def faces_of(sources: list[Path]) -> dict[Path, str]:
    """Return the stub for each .py whose names come from a table of `lazily`, by its path."""
    made = {}
    for path in sources:
        text = path.read_text()
        if "= lazily(\n" not in text or "\nTYPE_CHECKING" in text:
            continue
        (table,) = (
            ast.literal_eval(node.args[1])
            for node in ast.walk(ast.parse(text))
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "lazily"
        )
        public, body = [], ""
        for place, names in table.items():
            parent, _, last = place.rpartition(".")
            for one in names.split():
                name, _, original = one.partition("=")
                if name.startswith("_"):
                    continue
                is_module = name in ("C", last)
                module, imported = (parent, last) if is_module else (place, original or name)
                body += f"from {module} import {imported} as {name}\n"
                public.append(name)
        body += f"\n__all__ = {sorted(public)}\n"
        made[path.with_suffix(".pyi").relative_to(ROOT)] = f"{HEADER}\n{body}"
    return made


def formatted(stubs: dict[Path, str], folder: Path) -> dict[Path, str]:
    """Return stubs as ruff writes them, with their imports sorted and first."""
    for path, text in stubs.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    options = ["--quiet", "--no-cache", "--isolated", "--line-length=100"]
    sort = ["--select=I", "--fix", "--config=lint.isort.known-first-party=['bridge']"]
    for command in (["check", *sort], ["format"]):
        subprocess.run([sys.executable, "-m", "ruff", *command, *options, folder], check=True)
    return {path: (folder / path).read_text() for path in stubs}


def main(arguments: list[str]) -> int:
    """Write the stubs, or compare them; return the exit status."""
    status = 0
    sources = sorted((ROOT / "bridge").rglob("*.pyx"))
    faces = faces_of(sorted((ROOT / "bridge").rglob("*.py")))
    with tempfile.TemporaryDirectory() as folder:
        stubs = formatted(stubs_of(sources) | faces, Path(folder))
    paths = {source.with_suffix(".pyi").relative_to(ROOT) for source in sources}
    for path in sorted(paths | faces.keys()):
        target = ROOT / path
        if stubs.get(path) == (target.read_text() if target.exists() else None):
            continue
        if arguments:
            print(f"{path} differs: run python tools/make_stubs.py")
            status = 1
        elif path in stubs:
            target.write_text(stubs[path])
        else:
            target.unlink()
    return status


if __name__ == "__main__":
    if sys.argv[1:] not in ([], ["--check"]):
        raise SystemExit(__doc__)
    raise SystemExit(main(sys.argv[1:]))
