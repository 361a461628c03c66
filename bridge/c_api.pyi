# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py; do not edit.
from typing_extensions import CapsuleType

C_API: CapsuleType
