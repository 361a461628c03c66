# SPDX-License-Identifier: Apache-2.0
"""Build the package and run the core suite with each Python that is installed here.

``make matrix`` calls it. A cell is a Python, and releases that differ from constraints.txt:
``3.12,torch==2.14.1,numpy==2.5.5``. A Python is looked for as ``python3.13`` or ``python3.13t`` on
PATH, among pyenv's, and among uv's. Each cell gets a virtual environment and a copy of the tree in
build/matrix, kept for the next run. At the end a table says what was run, what failed and what was
not found.

``--list`` prints the cells as JSON, for CI. ``--built PYTHON`` runs the tests with an interpreter
that has everything, in this tree, as it is built. ``--record`` writes what was run into the table
of docs/versions.md; rows of what was not run stay.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CELLS = (
    *("3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "3.13t", "3.14t", "3.15t"),
    "3.10,torch==2.6.0,numpy==1.26.4",
    "3.11,torch==2.9.1,numpy==1.26.4",
    "3.12,torch==2.14.1,numpy==2.5.5",
    "3.13,torch==2.15.0,numpy==2.5.5",
)
CORE = (
    *("tests/c10", "tests/dlpack", "tests/wire", "tests/at", "tests/caffe2/tensor"),
    *("tests/caffe2/blobs", "tests/caffe2/workspaces", "tests/caffe2/execution"),
    *("tests/test_wrapper.py", "tests/test_front.py", "tests/test_threads.py"),
)
# What the core suite needs besides the package, in the versions of constraints.txt.
NEEDS = ("torch", "hypothesis", "ml_dtypes", "pytest", "pytest-randomly", "setuptools", "Cython")
# What constraints.txt cannot say, as its conditions do not know Pythons without the GIL: the last
# releases with a wheel for one, and the last setuptools that such a torch takes.
LAST = {
    "3.13t": {
        "torch": "2.12.0",
        "ml_dtypes": "0.5.4",
        "hypothesis": "6.155.7",
        "setuptools": "81.0.0",
    },
}
COPIED = (
    *("bridge", "tests", "tools", "examples", "docs"),
    *("pyproject.toml", "setup.py", "README.md", "LICENSE"),
)
ROOT = Path(__file__).parents[1]
RECORD = ROOT / "docs/versions.md"
HEAD = ("| Python | torch | NumPy | tests |", "|---|---|---|---|")
ASK = (
    "import platform, sys, sysconfig, numpy, torch\n"
    "free = 't' if sysconfig.get_config_var('Py_GIL_DISABLED') else ''\n"
    "print(platform.python_version() + free, torch.__version__, numpy.__version__)"
)


def named(python: str) -> str:
    """Return the version that an interpreter says it is, such as "3.13t"; "" if it does not run."""
    code = (
        "import sys, sysconfig\n"
        "print('%d.%d' % sys.version_info[:2], end='')\n"
        "print('t' if sysconfig.get_config_var('Py_GIL_DISABLED') else '')"
    )
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout.strip()


def find(version: str) -> str | None:
    """Return an interpreter of that version."""
    plain = version.rstrip("t")
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    # A Python without the GIL also installs itself as python3.14, before or after the usual one.
    folders = os.environ.get("PATH", "").split(os.pathsep)
    found = [str(Path(folder) / f"python{version}") for folder in folders]
    found += [str(one / "bin/python") for one in sorted(pyenv.glob(f"{plain}*"), reverse=True)]
    if shutil.which("uv"):
        asked = subprocess.run(
            ["uv", "python", "find", version], capture_output=True, text=True, check=False
        )
        found.append(asked.stdout.strip())
    return next((one for one in found if one and named(one) == version), None)


def run(command: list[str], log: Path, **options: object) -> bool:
    """Run a command, its output appended to `log`; return whether it succeeded."""
    with log.open("a") as out:
        out.write(f"\n$ {' '.join(command)}\n")
        out.flush()
        done = subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=False, **options)  # type: ignore[call-overload]
    return bool(done.returncode == 0)


def constraints(version: str, others: list[str]) -> str:
    """Return the lines of constraints.txt for one Python; `others`: other releases, "name==1.2"."""
    last = {**LAST.get(version, {}), **dict(other.split("==", 1) for other in others)}
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    kept = [line for line in pinned if line.partition("==")[0] not in last]
    return "\n".join([*kept, *(f"{name}=={number}" for name, number in last.items()), ""])


def tested(own: str, tree: Path, log: Path, tests: list[str], free: bool) -> tuple[str, str]:
    """Run the tests; return what came of it, in words, and the versions it was run with."""
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    if free:
        # torch imports triton, which does not declare that it needs no lock. tests/test_threads.py
        # checks without this that the package itself leaves the lock off.
        environment["PYTHON_GIL"] = "0"
    asked = subprocess.run([own, "-c", ASK], capture_output=True, text=True, check=False)
    passed = run([own, "-m", "pytest", "-q", *tests], log, cwd=tree, env=environment)
    summary = re.findall(r"\d+ (?:passed|failed)[^\n]*", log.read_text(errors="replace"))
    said = re.sub(r" in [\d.]+s.*", "", summary[-1]) if summary else f"see {log}"
    return f"{'ok' if passed else 'FAILED'}: {said}", asked.stdout.strip()


def record(versions: str, result: str) -> None:
    """Write a row into the table of docs/versions.md, in place of the one with these versions."""
    lines = RECORD.read_text().splitlines()
    begin = lines.index(HEAD[1]) + 1
    end = next((i for i in range(begin, len(lines)) if not lines[i].startswith("|")), len(lines))
    key = "| " + " | ".join(versions.split()) + " |"
    rows = [row for row in lines[begin:end] if not row.startswith(key)] + [f"{key} {result} |"]
    rows.sort(key=lambda row: [int(number) for number in re.findall(r"\d+", row)])
    RECORD.write_text("\n".join([*lines[:begin], *rows, *lines[end:], ""]))


def try_cell(cell: str, folder: Path, tests: list[str]) -> tuple[str, str]:
    """Return what came of one cell, in words, and the versions it was run with."""
    version, *others = cell.split(",")
    python = find(version)
    if python is None:
        return "not found", ""
    place = folder / cell.replace(",", "-").replace("==", "-")
    tree, log = place / "tree", place / "log.txt"
    own = str(place / "venv/bin/python")
    tree.mkdir(parents=True, exist_ok=True)
    log.write_text(f"{python}\n")
    if not Path(own).exists() and not run([python, "-m", "venv", str(place / "venv")], log):
        return f"no virtual environment; see {log}", ""
    (place / "constraints.txt").write_text(constraints(version, others))
    install = [own, "-m", "pip", "install", "--only-binary=:all:"]
    install += ["--constraint", str(place / "constraints.txt"), "numpy", "protobuf", *NEEDS]
    if not run(install, log):
        return f"NumPy, torch or another package has no wheel; see {log}", ""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            # Cython's C is made anew; that of the examples is source.
            built = ("*.so", "*.c") if name == "bridge" else ()
            left_out = shutil.ignore_patterns("__pycache__", *built)
            shutil.copytree(source, tree / name, ignore=left_out, dirs_exist_ok=True)
        else:
            shutil.copy2(source, tree / name)
    build = [own, "setup.py", "-q", "build_ext", "--inplace", "--parallel", str(os.cpu_count())]
    if not run(build, log, cwd=tree):
        return f"does not build; see {log}", ""
    return tested(own, tree, log, tests, version.endswith("t"))


def main() -> int:
    """Try each cell; return 1 if one of those found failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("cells", nargs="*", help="such as 3.12 3.14t 3.12,torch==2.14.1")
    parser.add_argument("--tests", nargs="*", default=CORE)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/matrix")
    parser.add_argument("--built", nargs="+", default=[], metavar="PYTHON")
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--list", action="store_true")
    asked = parser.parse_args()
    if asked.list:
        print(json.dumps(CELLS))
        return 0
    folder = asked.folder.resolve()
    folder.mkdir(parents=True, exist_ok=True)
    failed = False
    for one in asked.built or asked.cells or CELLS:
        if asked.built:
            log = folder / "built.txt"
            log.write_text(f"{one}\n")
            result, versions = tested(one, ROOT, log, list(asked.tests), named(one).endswith("t"))
        else:
            result, versions = try_cell(one, folder, list(asked.tests))
        print(f"{versions or one}: {result}", flush=True)
        failed = failed or not result.startswith(("ok", "not found"))
        if asked.record and versions:
            record(versions, result)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
