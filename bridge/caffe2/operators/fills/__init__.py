# SPDX-License-Identifier: Apache-2.0
"""Tensors filled with constants, given values, ranges or random numbers; random samples."""
