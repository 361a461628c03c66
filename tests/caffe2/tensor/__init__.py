# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.tensor`; of these modules the names of the files do not show it::

- flat_view: test_tensor_data
- list_values: test_construct
- metadata: test_tensor_metadata
"""
