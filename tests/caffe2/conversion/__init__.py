# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.conversion`; the modules whose tests have another name::

- database_files, entries, npz_files, pickle_source,
  safetensors_files: test_checkpoints
- module_source, net_programs, torch_calls: test_net_files
- net_source: test_net_files, shell/test_convert
"""
