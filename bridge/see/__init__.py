# SPDX-License-Identifier: Apache-2.0
"""Inspection of memory: which conversions copy, who owns a tensor's memory, and who shares it.

The public functions are in `bridge.front`, which loads these modules at the first call.
"""

from __future__ import annotations
