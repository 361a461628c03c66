# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.graph`; what Caffe2 does with the same calls is in tests/conformance."""
