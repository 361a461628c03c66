# SPDX-License-Identifier: Apache-2.0
"""Bringing tensors in and handing them out: knows TensorImpl and no wrapper."""

from bridge.exchange.ingest import ingest

__all__ = ["ingest"]
