# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.files`; the modules whose tests have another name::

- blob_files: test_minidb, test_lmdb, caffe2/operators/control/test_files
- database_interface, databases: test_handles, test_lmdb, test_minidb
"""
