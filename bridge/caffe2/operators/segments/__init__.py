# SPDX-License-Identifier: Apache-2.0
"""Rows in segments of given lengths, and sequences."""
