# SPDX-License-Identifier: Apache-2.0
"""Build the package and run the core suite with each Python that is installed here.

``make matrix`` calls it. A Python is looked for as ``python3.13`` or ``python3.13t`` on PATH, among
pyenv's, and among uv's. Each gets a virtual environment and a copy of the tree in build/matrix,
kept for the next run. At the end a table says what was run, what failed and what was not found.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

VERSIONS = ("3.10", "3.11", "3.12", "3.13", "3.14", "3.15", "3.13t", "3.14t", "3.15t")
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


def constraints(version: str) -> str:
    """Return the lines of constraints.txt as they are for one version."""
    last = LAST.get(version, {})
    pinned = (ROOT / "constraints.txt").read_text().splitlines()
    kept = [line for line in pinned if line.partition("==")[0] not in last]
    return "\n".join([*kept, *(f"{name}=={number}" for name, number in last.items()), ""])


def try_version(version: str, folder: Path, tests: list[str]) -> str:
    """Return what came of one version, in words."""
    python = find(version)
    if python is None:
        return "not found"
    place = folder / version
    tree, log = place / "tree", place / "log.txt"
    own = str(place / "venv/bin/python")
    tree.mkdir(parents=True, exist_ok=True)
    log.write_text(f"{python}\n")
    if not Path(own).exists() and not run([python, "-m", "venv", str(place / "venv")], log):
        return f"no virtual environment; see {log}"
    (place / "constraints.txt").write_text(constraints(version))
    install = [own, "-m", "pip", "install", "--only-binary=:all:"]
    install += ["--constraint", str(place / "constraints.txt"), "numpy", "protobuf", *NEEDS]
    if not run(install, log):
        return f"NumPy, torch or another package has no wheel; see {log}"
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
        return f"does not build; see {log}"
    environment = {**os.environ, "PYTHONPATH": str(tree), "OMP_NUM_THREADS": "1"}
    if version.endswith("t"):
        # torch imports triton, which does not declare that it needs no lock. tests/test_threads.py
        # checks without this that the package itself leaves the lock off.
        environment["PYTHON_GIL"] = "0"
    passed = run([own, "-m", "pytest", "-q", *tests], log, cwd=tree, env=environment)
    summary = re.findall(r"\d+ (?:passed|failed)[^\n]*", log.read_text(errors="replace"))
    return f"{'ok' if passed else 'FAILED'}: {summary[-1] if summary else f'see {log}'}"


def main() -> int:
    """Try each version; return 1 if one of those found failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("versions", nargs="*", default=VERSIONS, help="such as 3.12 3.14t")
    parser.add_argument("--tests", nargs="*", default=CORE)
    parser.add_argument("--folder", type=Path, default=ROOT / "build/matrix")
    asked = parser.parse_args()
    results = {}
    for version in asked.versions:
        results[version] = try_version(version, asked.folder.resolve(), list(asked.tests))
        print(f"{version:6} {results[version]}", flush=True)
    return int(any("ok" not in one and one != "not found" for one in results.values()))


if __name__ == "__main__":
    sys.exit(main())
