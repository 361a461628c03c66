# SPDX-License-Identifier: Apache-2.0
"""``bridge caffe2 inspect``: the contents of a net, a checkpoint or a predictor export."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import Any

from bridge.shell.usage_errors import about, one_line

_EXAMPLES = """\
examples:
  bridge caffe2 inspect predict_net.pb init_net.pb
  bridge caffe2 inspect model.minidb --json
"""
_KINDS = {
    "minidb": "a minidb checkpoint",
    "lmdb": "an LMDB checkpoint",
    "pickle": "pickled arrays",
    "safetensors": "a safetensors file",
    "npz": "an .npz file",
}


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "inspect",
        help="show the operators of a net, or the blobs of a checkpoint",
        description="Show the operators of nets, and the blobs of checkpoints and predictor "
        "exports with their types, sizes and bytes. Files are recognized by their content; nothing "
        "in them is run.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("files", nargs="+", metavar="FILE", help="a file, or a folder of LMDB")
    parser.add_argument("--json", action="store_true", help="print JSON, a list of all files")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    import sys

    from bridge.shell.text_tables import as_json

    status = 0
    found: list[dict[str, Any]] = []
    for i, path in enumerate(parsed.files):
        try:
            with about(path):
                described = _describe(path)
        except Exception as error:  # of one file; the others are shown
            if parsed.debug or len(parsed.files) == 1:
                raise
            print(f"bridge: {one_line(error)}", file=sys.stderr)
            status = 1
            continue
        if parsed.json:
            found.append(described)
        else:
            if i:
                print()
            _print(described)
    if parsed.json:
        print(as_json(found))
    return status


def _describe(path: str) -> dict[str, Any]:
    """Return the contents of a file as plain Python objects, fit for JSON."""
    from bridge.caffe2.conversion.checkpoints import (
        NET,
        kind_of_file,
        open_entries,
        predictor_export_in,
    )
    from bridge.caffe2.conversion.net_source import net_in

    kind = kind_of_file(path)
    if kind == NET:
        return {"file": path, "format": NET, **_net(net_in(path))}
    with open_entries(path, kind) as opened:
        export = predictor_export_in(opened.entries)
        blobs = [entry.to_dict() for entry in opened.entries if not entry.name.startswith("!!")]
    described: dict[str, Any] = {"file": path, "format": kind, "blobs": blobs}
    if export is not None:
        described["predictor"] = {
            "inputs": export.inputs,
            "outputs": export.outputs,
            "parameters": export.parameters,
            "net": _net(export.net),
        }
    return described


def _net(net: Any) -> dict[str, Any]:
    return {
        "name": net.name,
        "operators": [_operator(operator) for operator in net.op],
        "external_input": list(net.external_input),
        "external_output": list(net.external_output),
    }


def _operator(operator: Any) -> dict[str, Any]:
    return {
        "type": operator.type,
        "inputs": list(operator.input),
        "outputs": list(operator.output),
        "arguments": {argument.name: _argument(argument) for argument in operator.arg},
    }


def _argument(argument: Any) -> Any:
    """Return the value of an argument as plain Python; of weights, how many there are."""
    for field in ("f", "i"):
        if argument.HasField(field):
            return getattr(argument, field)
    if argument.HasField("s"):
        return _text(argument.s)
    for field in ("floats", "ints"):
        values = list(getattr(argument, field))
        if values:
            return values if len(values) <= 16 else f"{len(values)} {field}"
    if argument.strings:
        texts = [_text(one) for one in argument.strings]
        return texts if len(texts) <= 16 else f"{len(texts)} strings"
    nets = [argument.n] if argument.HasField("n") else list(argument.nets)
    return [_net(net) for net in nets] if nets else None


def _text(data: bytes) -> str:
    return data.decode() if len(data) <= 200 and data.isascii() else f"{len(data)} bytes"


def _print(found: dict[str, Any]) -> None:
    name = os.path.basename(found["file"].rstrip("/"))
    if "operators" in found:
        print(f"{name}: a net, {found['name']!r}")
        _print_net(found)
        return
    kind = _KINDS[found["format"]]
    predictor = found.get("predictor")
    if predictor is not None:
        kind = f"a predictor export ({found['format']})"
    print(f"{name}: {kind}")
    _print_blobs(found["blobs"])
    if predictor is not None:
        print(f"\nnet {predictor['net']['name']!r}")
        _print_net(predictor["net"])


def _print_blobs(blobs: Sequence[dict[str, Any]]) -> None:
    from bridge.shell.text_tables import nbytes_text, print_table

    rows = [
        [
            one["name"],
            one.get("dtype", one["kind"]) + (" int8" if one["kind"] == "int8 tensor" else ""),
            " x ".join(str(n) for n in one["sizes"]) if "sizes" in one else "",
            nbytes_text(one["nbytes"]),
        ]
        for one in blobs
    ]
    print_table(["blob", "type", "sizes", "bytes"], rows, right="3")
    total = sum(one["nbytes"] for one in blobs)
    print(f"{len(blobs)} blobs, {nbytes_text(total)}")


def _print_net(net: dict[str, Any]) -> None:
    from bridge.shell.text_tables import print_table

    rows = [
        [
            str(i),
            one["type"],
            ", ".join(one["inputs"]),
            ", ".join(one["outputs"]),
            ", ".join(f"{name}={_shown(value)}" for name, value in one["arguments"].items()),
        ]
        for i, one in enumerate(net["operators"])
    ]
    print_table(["", "operator", "inputs", "outputs", "arguments"], rows, right="0")
    print(f"{len(rows)} operators")
    print(f"inputs: {', '.join(net['external_input']) or 'none'}")
    print(f"outputs: {', '.join(net['external_output']) or 'none'}")


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, list):
        return f"[{', '.join(_shown(one) for one in value)}]"
    if isinstance(value, dict):
        return f"a net of {len(value['operators'])} operators"
    return str(value)
