# SPDX-License-Identifier: Apache-2.0
"""Sums, means and extremes over dimensions, and their gradients."""
