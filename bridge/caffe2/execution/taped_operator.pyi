# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base

from bridge.caffe2.execution.operator_core import OperatorCore

@disjoint_base
class Seen: ...

@disjoint_base
class TapedOperator(OperatorCore): ...
