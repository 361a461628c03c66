# SPDX-License-Identifier: Apache-2.0
"""Modules of an old PyTorch's Caffe2 in pure Python, loaded for those that the bridge lacks."""
