# SPDX-License-Identifier: Apache-2.0
"""Gradient operators, held against those of the real Caffe2."""
