# SPDX-License-Identifier: Apache-2.0
"""Helpers of operators: base classes, rows, channels and windows."""
