# SPDX-License-Identifier: Apache-2.0
"""Every public name has a docstring, and every example in a docstring runs as shown.

The names are found by walking the package, compiled modules included, so that a new one is checked
without being listed here. doctest's own finder passes over Cython's functions; hence the walk.
"""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

import bridge

# The modules of the interface.
PUBLIC_MODULES = (
    "bridge",
    "bridge.at",
    "bridge.c10",
    "bridge.caffe2",
    "bridge.caffe2.workspace",
    "bridge.tf",
)


# Optional packages, without which the module that adapts each cannot be imported.
OPTIONAL = {"cupy", "jax", "keras", "lmdb", "pyarrow", "tensorflow"}


def bridge_modules() -> list[str]:
    """Return the names of all modules of the package, except generated protobuf code."""
    found = pkgutil.walk_packages(bridge.__path__, "bridge.")
    return ["bridge", *(info.name for info in found if not info.name.endswith("_pb2"))]


def load(module_name: str) -> ModuleType | None:
    """Import a module; return None if it adapts a package that is not installed or would crash.

    Paddle ends a process that has imported TensorFlow before it (Paddle 3.3, TensorFlow 2.21).
    """
    paddle = module_name.endswith(("functions.outside.paddle", "functions.inside.paddle"))
    if paddle and "tensorflow" in sys.modules and "paddle" not in sys.modules:
        return None
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        return None


def loaded_modules() -> list[ModuleType]:
    """Return all modules of the package that can be imported here."""
    return [module for name in bridge_modules() if (module := load(name)) is not None]


def is_ours(value: object) -> bool:
    """Return whether `value` is defined in the package and can have a docstring."""
    if not (inspect.isclass(value) or callable(value) or inspect.isdatadescriptor(value)):
        return False
    home = getattr(value, "__module__", None)
    if home is None:  # a getter or method of an extension class names only its class
        home = getattr(getattr(value, "__objclass__", None), "__module__", None)
    return isinstance(home, str) and home.split(".")[0] == "bridge"


def public_names(module: ModuleType) -> list[str]:
    """Return the names that a module exports: `__all__`, or those without a leading underscore."""
    exported = getattr(module, "__all__", None)
    return list(exported) if exported is not None else [n for n in vars(module) if n[0] != "_"]


def members(cls: type) -> Iterator[tuple[str, object]]:
    """Yield the public methods, properties and nested classes that `cls` itself defines."""
    for name, value in vars(cls).items():
        if name.startswith("_"):
            continue
        if isinstance(value, (staticmethod, classmethod)):
            yield name, value.__func__
        elif inspect.isroutine(value) or inspect.isdatadescriptor(value) or inspect.isclass(value):
            yield name, value


def prose(value: object) -> str:
    """Return the docstring without the signature line that Cython may put above it."""
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return re.sub(r"\A[\w.]+\(.*\)( -> .*)?(\n|\Z)", "", text).strip()


def documented() -> Iterator[tuple[str, object]]:
    """Yield (qualified name, object) of everything public, each object once."""
    seen: set[int] = set()
    for module_name in PUBLIC_MODULES:
        module = importlib.import_module(module_name)
        yield module_name, module
        for name in public_names(module):
            value = getattr(module, name)
            if not is_ours(value) or id(value) in seen:
                continue
            seen.add(id(value))
            if not inspect.isclass(value) and not inspect.isroutine(value):
                continue  # an instance, such as c10.float32, is documented by its class
            yield f"{module_name}.{name}", value
            if inspect.isclass(value):
                for base in value.__mro__:
                    if is_ours(base):
                        for member, function in members(base):
                            yield f"{module_name}.{name}.{member}", function


PUBLIC = dict(documented())


def test_the_walk_finds_the_names_of_the_interface() -> None:
    wanted = {
        "bridge.from_dlpack",
        "bridge.to_torch",
        "bridge.at.Tensor",
        "bridge.at.Tensor.transpose",
        "bridge.c10.TypeMeta",
        "bridge.c10.TypeMeta.Match",
        "bridge.caffe2.Tensor",
        "bridge.caffe2.Tensor.Resize",
        "bridge.caffe2.workspace.FeedBlob",
        "bridge.tf.TensorShape",
        "bridge.tf.from_tensor_proto",
    }
    assert wanted <= PUBLIC.keys(), sorted(wanted - PUBLIC.keys())


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_has_a_docstring(name: str) -> None:
    if inspect.isdatadescriptor(PUBLIC[name]) and not prose(PUBLIC[name]):
        # A plain attribute of an extension class cannot have one: its class describes it.
        owner, attribute = name.rsplit(".", 1)
        assert re.search(rf"\b{attribute}\b", prose(PUBLIC[owner])), f"{owner}: no {attribute}"
        return
    assert prose(PUBLIC[name]), f"{name} has no docstring"


def test_every_listed_name_exists() -> None:
    for module in loaded_modules():
        for name in getattr(module, "__all__", ()):
            assert hasattr(module, name), f"{module.__name__}.__all__ lists {name}"


def docstrings(module: ModuleType) -> Iterator[tuple[str, str]]:
    """Yield (qualified name, docstring) of a module and of everything defined in it."""
    yield module.__name__, module.__doc__ or ""
    for name, value in sorted(vars(module).items()):
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if inspect.isclass(value):
            yield f"{module.__name__}.{name}", value.__doc__ or ""
            for member, function in sorted(vars(value).items()):
                text = getattr(function, "__doc__", None)
                own = inspect.isroutine(function) or inspect.isdatadescriptor(function)
                if own and isinstance(text, str):
                    yield f"{module.__name__}.{name}.{member}", text
        elif inspect.isroutine(value):
            yield f"{module.__name__}.{name}", value.__doc__ or ""


def examples_in(module: ModuleType) -> list[doctest.DocTest]:
    """Return the examples of a module; each runs with the names of the module."""
    parser = doctest.DocTestParser()
    found = []
    for name, text in docstrings(module):
        test = parser.get_doctest(text, dict(vars(module)), name, module.__file__, 0)
        if test.examples:
            found.append(test)
    return found


@pytest.mark.usefixtures("fresh_workspace")
@pytest.mark.parametrize("module_name", bridge_modules())
def test_docstring_examples_run(module_name: str) -> None:
    module = load(module_name)
    if module is None:
        pytest.skip(f"{module_name} adapts a package that is not installed")
    output: list[str] = []
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for example in examples_in(module):
        bridge.caffe2.workspace.ResetWorkspace()
        runner.run(example, out=output.append)
    assert runner.summarize(verbose=False).failed == 0, "".join(output)


# Every public name of these is used in an example: in its own docstring, in that of its owner, or
# in that of the module that defines it.
SHOWN = ("bridge.at", "bridge.at.Tensor", "bridge.caffe2.Tensor", "bridge.caffe2.workspace")


def example_code(value: object) -> str:
    """Return the code of all examples in a docstring."""
    examples = doctest.DocTestParser().get_examples(getattr(value, "__doc__", None) or "")
    return "".join(example.source for example in examples)


def owned(owner: str) -> dict[str, object]:
    """Return the public names of a class or module, without methods that torch runs."""
    value = PUBLIC[owner]
    if isinstance(value, ModuleType):
        return {name: getattr(value, name) for name in public_names(value)}
    assert isinstance(value, type)
    return {
        name: member
        for base in value.__mro__
        if is_ours(base)
        for name, member in members(base)
        # Own methods are compiled; those of at.Tensor that torch runs are Python functions.
        if not inspect.isfunction(member) and not isinstance(member, property)
    }


@pytest.mark.parametrize("owner", SHOWN)
def test_every_name_is_in_an_example(owner: str) -> None:
    shown = example_code(PUBLIC[owner])
    missing = []
    for name, value in owned(owner).items():
        home = sys.modules.get(getattr(value, "__module__", None) or "")
        if not re.search(rf"\b{name}\b", shown + example_code(value) + example_code(home)):
            missing.append(name)
    assert not missing, f"{owner}: no example of {', '.join(missing)}"


@pytest.mark.parametrize("part", PUBLIC_MODULES)
def test_each_part_shows_examples(part: str) -> None:
    inside = [m for m in loaded_modules() if f"{m.__name__}.".startswith(f"{part}.")]
    assert any(examples_in(module) for module in inside), f"no docstring in {part} has an example"
