# SPDX-License-Identifier: Apache-2.0
"""Fuzz one door of `doors.py`: `make fuzz` runs all of them.

    python tests/fuzz/fuzz_door.py DOOR [libFuzzer's options] [folder for what it finds]
    python tests/fuzz/fuzz_door.py DOOR --by-chance SECONDS

The first needs atheris, and is guided by the coverage of the Python part; of the compiled modules,
too, where the package was built by clang with coverage. The second mutates the first inputs, and
needs nothing. Both begin with what `corpus.py` keeps.
"""

import contextlib
import os
import random
import sys
import tempfile
import time
from pathlib import Path

# Last, so that the package is the one that is installed, and the tests are those here.
sys.path.append(str(Path(__file__).resolve().parents[2]))


def by_chance(name: str, seconds: float) -> None:
    """Mutate inputs until the time is over; end with the input and its error if there is one."""
    from tests.fuzz.corpus import kept
    from tests.fuzz.doors import DOORS, enter
    from tests.golden.blob_messages import mutated

    seed = int(time.time())
    rng, seeds = random.Random(seed), DOORS[name][1]() + kept(name)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        data = mutated(rng, seeds) if rng.random() < 0.5 else rng.randbytes(rng.randrange(96))
        count += 1
        try:
            enter(name, data)
        except BaseException:
            print(f"{name}, seed {seed}: {data!r}", file=sys.stderr)
            raise
    print(f"{name}: {count} inputs")


def guided() -> None:
    """Run libFuzzer with the options of the command line."""
    # as in fuzz_blob.py: the compiled modules look for libFuzzer's hooks among shared symbols
    usual = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)
    import atheris
    import atheris.core_with_libfuzzer

    sys.setdlopenflags(usual)
    with atheris.instrument_imports(include=["bridge"]):
        from tests.fuzz.doors import DOORS, enter
    from tests.fuzz.corpus import kept

    name = sys.argv[1]
    with contextlib.suppress(ImportError):  # seconds, which are not those of an input
        import torch  # noqa: F401
    with tempfile.TemporaryDirectory() as first:
        for index, data in enumerate(DOORS[name][1]() + kept(name)):
            (Path(first) / str(index)).write_bytes(data)
        words = [sys.argv[0], *sys.argv[2:]]
        for folder in (word for word in words[1:] if not word.startswith("-")):
            if not Path(folder).is_file():  # one input, to be run again
                Path(folder).mkdir(parents=True, exist_ok=True)

        def one_input(data: bytes) -> None:
            enter(name, data)

        atheris.Setup([*words, "-max_len=16384", first], one_input, internal_libfuzzer=True)
        atheris.Fuzz()


if __name__ == "__main__":
    if "--by-chance" in sys.argv:
        by_chance(sys.argv[1], float(sys.argv[-1]))
    else:
        guided()
