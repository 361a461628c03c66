# SPDX-License-Identifier: Apache-2.0
"""Fuzz `Blob.deserialize`, guided by coverage of the compiled reader: `tools/fuzz.sh`.

    python tests/fuzz/fuzz_blob.py [libFuzzer's options] [folder for what it finds]

Needs atheris. Where the package was built by clang with coverage, as `make
fuzz` does, the compiled modules report what they cover to the libFuzzer within atheris; else only
the Python part does. It begins with the real Caffe2's blobs, the crafted ones, and what `corpus.py`
keeps.
"""

import os
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Last, so that the package is the one that is installed, and the tests are those here.
sys.path.append(str(ROOT))

# The compiled modules look for libFuzzer's hooks among the symbols that all share; atheris itself
# loads them late, and for itself.
_usual = sys.getdlopenflags()
sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
import atheris  # noqa: E402  after the flags above
import atheris.core_with_libfuzzer  # noqa: E402

sys.setdlopenflags(_usual)

with atheris.instrument_imports(include=["bridge.caffe2", "bridge.c10"]):
    from tests.fuzz.check import Checker

from tests.fuzz.corpus import kept  # noqa: E402  after the path above
from tests.golden.blob_messages import crafted  # noqa: E402

_checker = Checker()


def one_input(data: bytes) -> None:
    """Check what must hold for all bytes; an error ends the run and the input is kept."""
    _checker.check(data)


def write_corpus(folder: Path) -> None:
    """Write the first inputs, each a small blob or part of one."""
    for path in (ROOT / "tests" / "golden" / "blobs").glob("*.pb"):
        if path.stat().st_size < 4096:
            (folder / path.name).write_bytes(path.read_bytes())
    for index, (_, data) in enumerate(crafted()):
        if len(data) < 4096:
            (folder / f"crafted{index}").write_bytes(data)
    for index, data in enumerate(kept("blob")):
        (folder / f"kept{index}").write_bytes(data)


def main() -> None:
    """Run libFuzzer with the options of the command line."""
    with tempfile.TemporaryDirectory() as first:
        write_corpus(Path(first))
        found = [word for word in sys.argv[1:] if not word.startswith("-")]
        for folder in found:
            if not Path(folder).is_file():  # one input, to be run again
                Path(folder).mkdir(parents=True, exist_ok=True)
        # libFuzzer writes what it finds into the first folder
        words = [*sys.argv, "-max_len=4096", first]
        atheris.Setup(words, one_input, internal_libfuzzer=True)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
