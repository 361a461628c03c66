# SPDX-License-Identifier: Apache-2.0
"""Fuzz one door of `doors.py`: `tools/fuzz.sh` runs all of them.

    python tests/fuzz/fuzz_door.py DOOR [libFuzzer's options] [folder for what it finds]
    python tests/fuzz/fuzz_door.py DOOR --by-chance SECONDS [--seed NUMBER]
    python tests/fuzz/fuzz_door.py DOOR --again FILE

The first needs atheris, and is guided by the coverage of the Python part; of the compiled modules,
too, where the package was built by clang with coverage. The second mutates the first inputs, and
needs nothing; each input is in a file before it is run, so that a crash leaves it there. Both begin
with what `corpus.py` keeps, and end at an input that takes a minute. The third runs one input that
the others have found.
"""

import contextlib
import faulthandler
import os
import random
import signal
import sys
import tempfile
import time
from pathlib import Path

# Last, so that the package is the one that is installed, and the tests are those here.
sys.path.append(str(Path(__file__).resolve().parents[2]))

TIME_LIMIT_S = 60  # of an input


def by_chance(name: str, seconds: float, seed: int) -> None:
    """Mutate inputs until the time is over; end with the input and its error if there is one."""
    from tests.fuzz.corpus import kept
    from tests.fuzz.doors import DOORS, enter
    from tests.golden.blob_messages import mutated

    faulthandler.register(signal.SIGALRM, chain=True)  # then it ends the process
    rng, seeds = random.Random(seed), DOORS[name][1]() + kept(name)
    with tempfile.NamedTemporaryFile(prefix=f"{name}-", buffering=0, delete=False) as last:
        print(f"{name}, seed {seed}: the last input is in {last.name}", flush=True)
        end, count = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            data = mutated(rng, seeds) if rng.random() < 0.5 else rng.randbytes(rng.randrange(96))
            count += 1
            os.pwrite(last.fileno(), data, 0)
            last.truncate(len(data))
            signal.alarm(TIME_LIMIT_S)
            enter(name, data)
    signal.alarm(0)
    Path(last.name).unlink()
    print(f"{name}: {count} inputs")


def again(name: str, file: str) -> None:
    """Run one input, of a file."""
    from tests.fuzz.doors import enter

    print("taken" if enter(name, Path(file).read_bytes()) else "refused")


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
        words = [sys.argv[0], f"-timeout={TIME_LIMIT_S}", *sys.argv[2:]]
        for folder in (word for word in words[1:] if not word.startswith("-")):
            if not Path(folder).is_file():  # one input, to be run again
                Path(folder).mkdir(parents=True, exist_ok=True)

        def one_input(data: bytes) -> None:
            enter(name, data)

        atheris.Setup([*words, "-max_len=16384", first], one_input, internal_libfuzzer=True)
        atheris.Fuzz()


def main() -> None:
    """Run what the command line says."""
    name, *options = sys.argv[1:]
    if options[:1] == ["--again"]:
        faulthandler.enable()
        again(name, options[1])
    elif options[:1] == ["--by-chance"]:
        faulthandler.enable()
        seed = int(options[3]) if options[2:3] == ["--seed"] else int(time.time())
        by_chance(name, float(options[1]), seed)
    else:
        guided()


if __name__ == "__main__":
    main()
