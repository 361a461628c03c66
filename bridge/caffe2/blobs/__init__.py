# SPDX-License-Identifier: Apache-2.0
"""Blobs, the values of a workspace: feeding, fetching and serializing them."""
