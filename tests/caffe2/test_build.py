# SPDX-License-Identifier: Apache-2.0
"""How Caffe2 was built."""

import torch

from bridge.caffe2 import build


def test_build_options_say_how_caffe2_was_built() -> None:
    assert build.CAFFE2_NO_OPERATOR_SCHEMA is False
    assert build.build_options["TORCH_VERSION"] == torch.__version__
    assert build.build_options["USE_CUDA"] in ("ON", "OFF")
