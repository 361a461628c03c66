# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing_extensions import Never, disjoint_base

@disjoint_base
class ManagedTensor:
    def __init__(self, never: Never, /, *args: Never, **kwargs: Never) -> None: ...
