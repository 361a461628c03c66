# SPDX-License-Identifier: Apache-2.0
"""Functions of elements: of one, of two, activations, casts, choices."""
