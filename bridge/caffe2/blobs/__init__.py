# SPDX-License-Identifier: Apache-2.0
"""Blobs: what a name in a workspace holds, and how values get in and out."""
