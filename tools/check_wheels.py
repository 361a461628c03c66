# SPDX-License-Identifier: Apache-2.0
"""Check what wheels contain: `python tools/check_wheels.py wheel...`.

Each is smaller than 4.0 MB, has a compiled module for each of the sources, their stubs, the module
of Cython's own functions that these share, bridge.h, DLPack's structs for Cython, a bill of
materials, and nothing beside the package. Run from the checkout.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

MOST_BYTES = 4_000_000
SHARED = "bridge/_cyutility"  # setup.py has it made
DECLARATIONS = "bridge/dlpack/abi.pxd"  # for users' Cython


def faults(wheel: Path) -> list[str]:
    """Return what is wrong with a wheel."""
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = {"bridge/py.typed", "bridge/include/bridge.h", DECLARATIONS}
    sources = list(Path("bridge").rglob("*.pyx"))
    for pattern in ("*.py", "*.pyi"):
        wanted.update(source.as_posix() for source in Path("bridge").rglob(pattern))
    missing = sorted(wanted - names)
    stray = sorted(
        name
        for name in names
        if not name.startswith(("bridge/", "bridge_tensor-"))
        or (name.endswith((".pyx", ".pxd", ".c")) and name != DECLARATIONS)
    )
    modules = {source.with_suffix("").as_posix() for source in sources} | {SHARED}
    if "-win_" in wheel.name:  # see LEFT_OUT of setup.py
        modules = {name for name in modules if not name.startswith("bridge/shared/")}
    built = {name.partition(".")[0] for name in names if name.endswith((".so", ".pyd"))}
    size = wheel.stat().st_size
    found = []
    if missing:
        found.append(f"lacks {missing}")
    if stray:
        found.append(f"has {stray} too")
    if built != modules:
        lacking, others = sorted(modules - built), sorted(built - modules)
        found.append(f"lacks the extension modules {lacking}, and has {others} too")
    if size > MOST_BYTES:
        found.append(f"has {size:,} bytes, more than {MOST_BYTES:,}")
    if not any(name.endswith(".dist-info/sboms/bridge.cdx.json") for name in names):
        found.append("lacks the software bill of materials")
    print(f"{wheel.name}: {len(built)} extension modules, {size / 1e6:.1f} MB")
    return found


def main(paths: list[str]) -> int:
    """Check them; return the exit status."""
    wrong = {path: faults(Path(path)) for path in paths}
    for path, found in wrong.items():
        for fault in found:
            print(f"{path} {fault}", file=sys.stderr)
    return 1 if not paths or any(wrong.values()) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
