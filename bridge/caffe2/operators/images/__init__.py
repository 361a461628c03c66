# SPDX-License-Identifier: Apache-2.0
"""Layers of images: convolutions, pooling, sizes, padding."""
