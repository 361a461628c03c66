# SPDX-License-Identifier: Apache-2.0
"""Datasets: nested columns read by cursors, queues of blobs, database readers."""
