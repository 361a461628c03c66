# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.tensor`; of these modules the names of the files do not show it::

- values: test_construct
"""
