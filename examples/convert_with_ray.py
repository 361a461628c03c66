# SPDX-License-Identifier: Apache-2.0
"""Convert a folder of Caffe2's checkpoints to safetensors with Ray, on all cores or machines.

    python convert_with_ray.py [folder-of-checkpoints folder-for-safetensors]

Each checkpoint is a task. If a worker is killed, by the kernel for its memory or with its machine,
Ray runs its task again, elsewhere. A file is written under another name and
then renamed, so what is there is complete, and a second run converts only what is missing.

Without arguments six checkpoints in a temporary folder are converted, and one worker is killed on
the way. The largest tensor of each comes back through Ray's object store: `ray.get` gives a tensor
on the store's memory, read-only, and copies nothing.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import ray
from safetensors.torch import save_file

import bridge
from bridge import at
from bridge.caffe2 import load_checkpoint, workspace

EXAMPLE = Path(__file__).parent / "data" / "checkpoint.minidb"


@ray.remote(max_retries=3)  # of tasks whose worker died; an error in the task itself is not retried
def convert(checkpoint: Path, out: Path, fatal: Path | None = None) -> tuple[str, Any]:
    """Convert one checkpoint; return what was done, and the largest tensor.

    fatal: a file; if it is not there, it is made, and the worker is killed.
    """
    workspace.ResetWorkspace()
    names = load_checkpoint(str(checkpoint))
    if fatal is not None and not fatal.exists():
        fatal.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    tensors = {}
    for name in names:
        try:
            tensors[name] = workspace.FetchTorch(name)
        except (
            RuntimeError
        ):  # a tensor of strings, or not a tensor: caffe2_checkpoint.py keeps them
            continue
    partial = out.with_suffix(f".{os.getpid()}.part")
    save_file(tensors, partial)
    os.replace(partial, out)
    largest = max(tensors.values(), key=lambda tensor: tensor.nbytes)
    return f"{out.name}: {len(tensors)} of {len(names)} blobs", bridge.from_dlpack(largest)


def convert_all(source: Path, target: Path, fatal: Path | None = None) -> int:
    """Convert what is not converted yet; return the number of files that failed."""
    target.mkdir(parents=True, exist_ok=True)
    waiting = []
    for checkpoint in sorted(source.glob("*.minidb")):
        out = target / f"{checkpoint.stem}.safetensors"
        if not out.exists():
            waiting.append(convert.remote(checkpoint, out, fatal))
    failed = 0
    while waiting:
        (done,), waiting = ray.wait(waiting)
        try:
            line, largest = ray.get(done)
        except ray.exceptions.RayError as error:
            failed += 1
            print(f"FAILED: {error}", file=sys.stderr)
            continue
        print(f"{line}, largest {list(largest.sizes())} {largest.dtype}")
        assert isinstance(largest, at.Tensor)
        assert largest.readonly  # on the memory of Ray's store, which nobody may write
    return failed


def main(arguments: list[str]) -> int:
    """Convert; return the exit status."""
    if len(arguments) not in (0, 2):
        print(__doc__)
        return 2
    logging.getLogger("ray").setLevel(logging.ERROR)
    ray.init(
        num_cpus=None if arguments else 2,
        log_to_driver=False,
        logging_level=logging.ERROR,
        include_dashboard=False,
    )
    try:
        if arguments:
            return 1 if convert_all(Path(arguments[0]), Path(arguments[1])) else 0
        with tempfile.TemporaryDirectory() as folder:
            source, target = Path(folder, "checkpoints"), Path(folder, "converted")
            source.mkdir()
            for number in range(6):
                shutil.copy(EXAMPLE, source / f"epoch{number}.minidb")
            fatal = Path(folder, "one-worker-was-killed")
            failed = convert_all(source, target, fatal)
            print(f"{len(list(target.iterdir()))} of 6 converted")
            print("one worker was killed" if fatal.exists() else "no worker was killed")
            return 1 if failed else 0
    finally:
        ray.shutdown()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
