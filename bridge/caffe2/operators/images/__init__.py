# SPDX-License-Identifier: Apache-2.0
"""Layers on images: convolutions, pooling, resizing, padding, im2col."""
