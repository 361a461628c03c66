# SPDX-License-Identifier: Apache-2.0
"""``bridge caffe2 draw``: a net as a picture."""

from __future__ import annotations

import argparse
import os
from typing import Any

_EXAMPLES = """\
examples:
  bridge caffe2 draw predict_net.pb -o net.svg
  bridge caffe2 draw predictor.mdl -o net.svg
"""


def add_to(commands: Any) -> None:
    """Declare the command."""
    parser = commands.add_parser(
        "draw",
        help="draw a net as SVG",
        description="Draw the operators of a net, or of a predictor export, as an SVG picture.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("net", metavar="NET", help="a net (.pb, .pbtxt) or a predictor export")
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the picture, .svg")
    parser.set_defaults(run=_run)


def _run(parsed: argparse.Namespace) -> int:
    from bridge.caffe2.conversion.net_source import net_of_file
    from bridge.caffe2.core.net_picture import net_picture
    from bridge.caffe2.files.whole_file import encoded, write_whole
    from bridge.shell.usage_errors import UsageError, about

    if os.path.splitext(parsed.output)[1].lower() != ".svg":
        raise UsageError(f"pictures are SVG: {parsed.output!r} does not end with .svg")
    with about(parsed.net):
        net = net_of_file(parsed.net)
        picture = net_picture(net, net.name or os.path.basename(parsed.net))
    with about(parsed.output):
        write_whole(parsed.output, encoded(picture))
    return 0
