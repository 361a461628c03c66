# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing import Any

from typing_extensions import disjoint_base

from bridge.caffe2.execution.tape import Tape

def signature_of(operands: list[Any]) -> bytes | None: ...

@disjoint_base
class ModuleTape:
    def __init__(self, tape: Tape, signature: bytes, buffers: list[Any]) -> None: ...
    def __call__(self, operands: list[Any]) -> list[Any] | None: ...
