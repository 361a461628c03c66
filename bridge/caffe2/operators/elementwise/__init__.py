# SPDX-License-Identifier: Apache-2.0
"""Elementwise functions: of one input, of two, of several; activations, casts, selections."""
