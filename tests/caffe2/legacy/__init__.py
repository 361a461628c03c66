# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.legacy`."""
