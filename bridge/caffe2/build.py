# SPDX-License-Identifier: Apache-2.0
"""The names of ``caffe2.python.build``: how Caffe2 was built.

>>> from bridge.caffe2 import build
>>> build.CAFFE2_NO_OPERATOR_SCHEMA
False
"""

from __future__ import annotations

from bridge.caffe2.c_extension import define_caffe2_no_operator_schema as CAFFE2_NO_OPERATOR_SCHEMA
from bridge.caffe2.c_extension import get_build_options

__all__ = ["CAFFE2_NO_OPERATOR_SCHEMA", "build_options"]

build_options = get_build_options()
