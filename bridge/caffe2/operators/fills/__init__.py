# SPDX-License-Identifier: Apache-2.0
"""Tensors made of nothing: filled with given or random values, and samples."""
