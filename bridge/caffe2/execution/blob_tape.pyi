# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing_extensions import disjoint_base

from bridge.caffe2.execution.tape import Tape

@disjoint_base
class Layout: ...

@disjoint_base
class Operand: ...

@disjoint_base
class BlobTape(Tape): ...
