# SPDX-License-Identifier: Apache-2.0
"""``bridge caffe2 convert``: checkpoints to and from other formats, nets to torch's programs."""

from __future__ import annotations

import argparse
import os

from bridge.annotation import Any
from bridge.shell.usage_errors import UsageError, about

TYPE_CHECKING = False
if TYPE_CHECKING:
    Sizes = dict[str, tuple[list[int], str]]

_EXAMPLES = """\
examples:
  bridge caffe2 convert model.minidb -o model.safetensors
  bridge caffe2 convert model.safetensors -o model.minidb
  bridge caffe2 convert R-50.pkl -o R-50.npz
  bridge caffe2 convert predictor.mdl -o model.pt2
  bridge caffe2 convert predict_net.pb --init-net init_net.pb -o model.onnx --input data=1,3,224,224
  bridge caffe2 convert predict_net.pb --init-net init_net.pb -o model/ --input data=1,3,224,224

targets, by the name:
  .safetensors .npz      the blobs of a checkpoint, a predictor export or an init net
  .minidb .mdl .lmdb     the same as a database of Caffe2
  .pt2 .onnx             a net with its weights, by torch.export and torch.onnx
  a folder               module.py, one torch.nn.Module and load(), and weights.safetensors
"""
# The kind of target of each ending.
_CHECKPOINTS = {
    ".safetensors": "safetensors",
    ".npz": "npz",
    ".minidb": "minidb",
    ".mdl": "minidb",
    ".lmdb": "lmdb",
}
_NETS = {".pt2": "pt2", ".onnx": "onnx"}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "convert",
        help="convert a checkpoint or a net to another format",
        description="Convert a checkpoint or a net. SOURCE is recognized by its content. What is "
        "at TARGET is replaced as a whole when all is done, or not at all.",
        epilog=_EXAMPLES,
    )
    parser.add_argument(
        "source",
        metavar="SOURCE",
        help="a net (.pb, .pbtxt), minidb, LMDB, predictor export, .safetensors, .npz, or "
        "Detectron's .pkl",
    )
    parser.add_argument("-o", "--output", required=True, metavar="TARGET", help="what is written")
    parser.add_argument(
        "--init-net",
        metavar="FILE",
        help="the weights of a net: an init net, or a checkpoint of any kind",
    )
    parser.add_argument(
        "--input",
        action="append",
        default=[],
        type=_input,
        metavar="NAME=SIZES",
        help="an input of the net and its sizes, as data=1,3,224,224; with a type other than "
        "float32 as ids=8:int64; may be repeated",
    )
    parser.set_defaults(run=_run)


def _input(text: str) -> tuple[str, list[int], str]:
    name, equals, rest = text.rpartition("=")
    sizes, _, dtype = rest.partition(":")
    try:
        numbers = [int(one) for one in sizes.split(",")] if sizes else []
    except ValueError:
        equals = ""
    if not equals or not name or any(n < 0 for n in numbers):
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=SIZES, such as data=1,3,224,224")
    return name, numbers, dtype or "float32"


def _target_kind(target: str) -> str:
    """Return the kind of a target by its name. Raises UsageError: it tells none."""
    ending = os.path.splitext(target.rstrip("/"))[1].lower()
    kinds = {**_CHECKPOINTS, **_NETS}
    if ending in kinds and not (target.endswith("/") and ending != ".lmdb"):
        return kinds[ending]
    if not ending or target.endswith("/") or os.path.isdir(target):
        return "folder"
    raise UsageError(
        f"{target!r} does not say what to write: its name ends with one of {', '.join(kinds)}, or "
        "is that of a folder"
    )


def _run(parsed: argparse.Namespace) -> int:
    kind = _target_kind(parsed.output)
    sizes: Sizes = {name: (numbers, dtype) for name, numbers, dtype in parsed.input}
    if len(sizes) < len(parsed.input):
        raise UsageError("an input is given twice")
    if kind in _CHECKPOINTS.values():
        if parsed.init_net is not None or sizes:
            raise UsageError("--init-net and --input are for nets, and the target is a checkpoint")
        _convert_checkpoint(parsed.source, parsed.output, kind)
    else:
        _convert_net(parsed.source, parsed.init_net, sizes, parsed.output, kind)
    return 0


def _convert_checkpoint(source: str, target: str, kind: str) -> None:
    from bridge.caffe2.conversion.checkpoints import NET, kind_of_file, open_entries, write_entries
    from bridge.caffe2.conversion.entries import BlobEntries
    from bridge.caffe2.conversion.net_source import NetSource
    from bridge.shell.text_tables import Progress

    with about(source):
        found = kind_of_file(source)
        if found == NET:
            # Of an init net, which makes the blobs without inputs.
            opened: Any = BlobEntries(NetSource(source, None, {}).blobs())
        else:
            opened = open_entries(source, found)
    with about(target), opened, Progress(os.path.basename(source.rstrip("/"))) as progress:
        write_entries(target, kind, opened.entries, progress)


def _convert_net(source: str, init: str | None, sizes: Sizes, target: str, kind: str) -> None:
    from bridge.caffe2.conversion.checkpoints import CHECKPOINTS, kind_of_file
    from bridge.caffe2.conversion.net_source import MissingSizesError, NetSource, UnknownInputError

    found = kind_of_file(source)
    if found in CHECKPOINTS and found not in ("minidb", "lmdb"):
        raise UsageError(
            f"{source!r} is a checkpoint ({found}), and {target!r} would be a net; name a target "
            f"that ends with one of {', '.join(_CHECKPOINTS)}"
        )
    with about(source, *([] if init is None else [init])):
        try:
            net = NetSource(source, init, sizes)
            module = net.module()
            inputs = net.example_inputs(module.input_names)
        except UnknownInputError as error:
            raise UsageError(error.message) from error
        except MissingSizesError as error:
            raise UsageError(f"{error.message} Add --input NAME=SIZES, as in --help.") from error
    from bridge.caffe2.conversion.net_files import write_net

    with about(target):
        write_net(target, kind, module, inputs, os.path.basename(source))
