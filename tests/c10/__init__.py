# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.c10`; the modules whose tests have another name::

- copy: caffe2/tensor/test_tensor_share, test_reentrancy
- element_view: caffe2/tensor/test_tensor_objects, caffe2/tensor/test_tensor_strings
- layout, views: at/test_tensor_properties, at/test_tensor_views
- allocation, content, resizing: caffe2/tensor/test_tensor_data, caffe2/tensor/test_tensor_share,
  caffe2/tensor/test_tensor_resize
- dims: test_array_ref
- handle: test_wrapper
- reports: see/test_contexts_log, see/test_contexts
- raw_parts: test_pickling
- *: test_limits, test_reentrancy, test_windows
"""
