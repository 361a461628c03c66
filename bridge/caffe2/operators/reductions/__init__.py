# SPDX-License-Identifier: Apache-2.0
"""Sums, means, norms and extremes over dimensions, and their gradients."""
