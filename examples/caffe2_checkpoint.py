# SPDX-License-Identifier: Apache-2.0
"""Convert a checkpoint of Caffe2 to a safetensors file for PyTorch, and back.

    python caffe2_checkpoint.py [checkpoint.minidb [out.safetensors]]

The default checkpoint is data/checkpoint.minidb, written by Caffe2's Save operator; its output goes
to a temporary folder. The checkpoint is loaded into the workspace, and a torch state_dict over the
same memory is saved. Blobs that safetensors does not support (strings, quantized tensors) are
stored in its metadata as Caffe2's messages. Then the safetensors file is loaded into another
workspace and saved as a checkpoint, out.back.minidb, next to it. Existing files are not
overwritten. Exits with 1 if a blob is not the same, bit for bit.
"""

from __future__ import annotations

import base64
import json
import sys
import tempfile
import time
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from bridge.caffe2 import core, load_checkpoint, workspace

EXAMPLE = Path(__file__).parent / "data" / "checkpoint.minidb"
LARGE = 64 << 20  # bytes: progress is shown for files of at least this size
WORKSPACE_BACK = "back"


class Progress:
    """Prints the progress on a large file, at most once per second."""

    def __init__(self, what: str) -> None:
        self.what = what
        self.start = self.printed = time.monotonic()

    def __call__(self, done: int, total: int) -> None:
        """Report that `done` of `total` bytes are done."""
        now = time.monotonic()
        if total < LARGE or (done < total and now - self.printed < 1):
            return
        self.printed = now
        rate = done / max(now - self.start, 1e-9)
        print(f"{self.what}: {done / total:4.0%} of {total >> 20} MiB, {rate / 1e6:,.0f} MB/s")


def state_dict() -> tuple[dict[str, torch.Tensor], dict[str, str]]:
    """Return the workspace's tensors, shared, and all other blobs as messages in base64."""
    tensors: dict[str, torch.Tensor] = {}
    others: dict[str, str] = {}
    for name, blob in workspace.Workspace.current.blobs.items():
        try:
            tensors[name] = blob.to_torch()
        except RuntimeError:  # not a tensor, or a tensor of strings
            others[name] = base64.b64encode(blob.serialize(name)).decode()
    return tensors, others


def to_safetensors(checkpoint: Path, out: Path) -> list[str]:
    """Convert a checkpoint to safetensors; return the names of its blobs in their order."""
    names = load_checkpoint(str(checkpoint), progress=Progress(f"reading {checkpoint.name}"))
    tensors, others = state_dict()
    for name in names:
        if name in tensors:
            tensor = tensors[name]
            print(f"{name:<20} {tensor.dtype!s:<14} {list(tensor.shape)}")
        else:
            print(f"{name:<20} kept as Caffe2's message")
    metadata = {"format": "pt", "caffe2.order": json.dumps(names), "caffe2": json.dumps(others)}
    save_file(tensors, out, metadata)
    print(f"{len(tensors)} tensors and {len(others)} other blobs in {out.name}")
    return names


def to_checkpoint(source: Path, out: Path) -> None:
    """Convert safetensors to a checkpoint, through the current workspace, which must be empty."""
    progress = Progress(f"reading {source.name}")
    total, done = source.stat().st_size, 0
    with safe_open(source, framework="pt") as file:
        metadata = file.metadata() or {}
        for name in file.keys():  # noqa: SIM118  `file` is not a dict
            tensor = file.get_tensor(name)
            workspace.FeedBlob(name, tensor)
            done += tensor.nbytes
            progress(done, total)
    for name, message in json.loads(metadata.get("caffe2", "{}")).items():
        workspace.DeserializeBlob(name, base64.b64decode(message))
    names = json.loads(metadata.get("caffe2.order", "null")) or workspace.Blobs()
    workspace.RunOperatorOnce(
        core.CreateOperator("Save", names, [], db=str(out), db_type="minidb", absolute_path=1)
    )
    print(f"{len(names)} blobs in {out.name}, {out.stat().st_size} bytes")


def differing(names: list[str], checkpoint: Path) -> list[str]:
    """Return the names of blobs that differ between the current workspace and a checkpoint."""
    here = workspace.Workspace.current.blobs
    before = {name: here[name] for name in names}
    workspace.SwitchWorkspace("check", True)
    try:
        load_checkpoint(str(checkpoint), progress=Progress(f"checking {checkpoint.name}"))
        there = workspace.Workspace.current.blobs
        return [
            name
            for name, blob in before.items()
            if name not in there or blob.serialize(name) != there[name].serialize(name)
        ]
    finally:
        workspace.ResetWorkspace()
        workspace.SwitchWorkspace("default")


def convert(checkpoint: Path, out: Path) -> int:
    """Convert there and back, and compare; return the exit status."""
    again = out.with_name(f"{out.stem}.back.minidb")
    for path in (out, again):
        if path.exists():
            print(f"FAILED: {path} is there already", file=sys.stderr)
            return 1
    try:
        names = to_safetensors(checkpoint, out)
    except RuntimeError as error:
        print(f"FAILED: {error}", file=sys.stderr)
        return 1
    workspace.SwitchWorkspace(WORKSPACE_BACK, True)
    to_checkpoint(out, again)
    workspace.ResetWorkspace()
    workspace.SwitchWorkspace("default")
    wrong = differing(names, again)
    if wrong:
        print(f"FAILED: not as they were: {', '.join(wrong)}", file=sys.stderr)
        return 1
    same = again.read_bytes() == checkpoint.read_bytes() if again.stat().st_size < LARGE else None
    print("every blob is what it was" + ("; the files are the same byte for byte" if same else ""))
    return 0


def main(arguments: list[str]) -> int:
    """Run the conversion that the arguments specify; return the exit status."""
    if len(arguments) > 2 or any(argument.startswith("-") for argument in arguments):
        print(__doc__)
        return 2
    checkpoint = Path(arguments[0]) if arguments else EXAMPLE
    if len(arguments) == 2:
        return convert(checkpoint, Path(arguments[1]))
    with tempfile.TemporaryDirectory() as folder:
        if arguments:
            return convert(checkpoint, checkpoint.with_suffix(".safetensors"))
        return convert(checkpoint, Path(folder) / "checkpoint.safetensors")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
