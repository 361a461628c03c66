# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from bridge.c10.tensor_impl import TensorImpl

def packed_nbytes(impl: TensorImpl, begin: int, n: int) -> int: ...
def joined(
    head: bytes, impl: TensorImpl, begin: int, n: int, nbytes: int, tail: bytes
) -> bytes: ...
