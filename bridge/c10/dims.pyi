# SPDX-License-Identifier: Apache-2.0
from typing import final

@final
class Dims: ...
