# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.tensor`; the modules whose tests have another name::

- empty: test_factories
- flat_view: test_tensor_data
- metadata: test_tensor_metadata
"""
