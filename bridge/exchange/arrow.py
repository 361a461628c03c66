# SPDX-License-Identifier: Apache-2.0
"""pyarrow's classes, which have more than one protocol: Arrow's own says the most."""

from __future__ import annotations

from bridge.exchange.arrow_import import import_pyarrow as import_

__all__ = ["import_"]
