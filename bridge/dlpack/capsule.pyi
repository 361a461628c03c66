# SPDX-License-Identifier: Apache-2.0

from typing_extensions import Never, disjoint_base

@disjoint_base
class ManagedTensor:
    # Raises TypeError: it comes out of a capsule.
    def __init__(self, never: Never, /, *args: Never, **kwargs: Never) -> None: ...
