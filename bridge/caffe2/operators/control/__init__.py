# SPDX-License-Identifier: Apache-2.0
"""Operators that run nets, order operators, check values, and copy, print or store blobs."""
