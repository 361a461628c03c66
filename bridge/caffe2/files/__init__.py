# SPDX-License-Identifier: Apache-2.0
"""Databases of serialized blobs: minidb, LMDB, and checkpoints."""
