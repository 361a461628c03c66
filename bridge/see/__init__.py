# SPDX-License-Identifier: Apache-2.0
"""See what is shared: which conversions copy, whose memory a tensor has, who else has it.

What users call of it is in the front door, which loads these modules at the first call.
"""

from __future__ import annotations

__all__: list[str] = []
