# SPDX-License-Identifier: Apache-2.0
from typing_extensions import disjoint_base

from bridge.caffe2.execution.operator_core import OperatorCore

@disjoint_base
class Seen: ...

@disjoint_base
class TapedOperator(OperatorCore): ...
