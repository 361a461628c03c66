# SPDX-License-Identifier: Apache-2.0
from typing_extensions import CapsuleType

C_API: CapsuleType
