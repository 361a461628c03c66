# SPDX-License-Identifier: Apache-2.0
"""Rows in segments of given lengths, feature maps, and sequences of labels."""
