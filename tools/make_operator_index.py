# SPDX-License-Identifier: Apache-2.0
"""Write ``bridge/caffe2/operators/index.py``: run after an operator was added, commit the file.

    python tools/make_operator_index.py

It imports all modules of operators, and notes which of them registers which operator type.
"""

import importlib
import pathlib
import pkgutil
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = "bridge.caffe2.operators"
PATH = ROOT / "bridge" / "caffe2" / "operators" / "index.py"
HEAD = '''# SPDX-License-Identifier: Apache-2.0
"""Where each built-in operator is declared. Made by tools/make_operator_index.py."""

from __future__ import annotations

import functools

_TEXT = """
'''
TAIL = '''"""


@functools.cache
def modules() -> dict[str, str]:
    """Return the module in this package that declares an operator, by registry key."""
    lines = (line.partition(": ") for line in _TEXT.replace("\\n  ", " ").strip().split("\\n"))
    return {key: module for module, _, keys in lines for key in keys.split()}
'''


class Noted(dict):
    """The table of operator types, which notes the module that adds a type."""

    def __init__(self) -> None:
        super().__init__()
        self.modules: dict[str, str] = {}

    def setdefault(self, key, default):
        """Add a type; as dict.setdefault."""
        frame = sys._getframe(1)
        while frame.f_code.co_name != "<module>":
            frame = frame.f_back
        module = frame.f_globals["__name__"].removeprefix(PACKAGE + ".")
        if self.modules.setdefault(key, module) != module:
            sys.exit(f"{key} is declared in {module} and in {self.modules[key]}")
        return super().setdefault(key, default)


def text() -> str:
    """Return the text of the index."""
    from bridge.caffe2.definitions import operator_types

    operator_types.classes = noted = Noted()
    operator_types.load_built_in = lambda key: None
    package = importlib.import_module(PACKAGE)
    for module in pkgutil.walk_packages(package.__path__, PACKAGE + "."):
        importlib.import_module(module.name)
    by_module: dict[str, list[str]] = {}
    for key, name in noted.modules.items():
        by_module.setdefault(name, []).append(key)
    lines = []
    for name, keys in sorted(by_module.items()):
        line = f"{name}: {' '.join(sorted(keys))}"
        wrapped = textwrap.wrap(line, 100, subsequent_indent="  ", break_on_hyphens=False)
        lines += [one + "\n" for one in wrapped]
    return HEAD + "".join(lines) + TAIL


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    PATH.write_text(text())
