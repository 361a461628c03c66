# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.workspaces`; the modules whose tests have another name::

- plan_runs, predictor: test_named_nets
- blob_functions, blob_map, current: test_named_blobs, test_workspace_switching
- c_functions: conformance/test_workspace_replay
- checkpoint: caffe2/files/test_minidb, caffe2/files/test_lmdb
- name_text: test_named_blobs
- record_blobs: caffe2/schema/test_columns
- shape_rules: test_shape_inference
"""
