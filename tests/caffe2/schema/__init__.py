# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.schema`; the modules whose tests have another name::

- containers, field: test_columns
"""
