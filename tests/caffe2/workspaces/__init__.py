# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.workspaces`; of these modules the names of the files do not show it::

- background: test_immediate
- benchmark, predictor: caffe2/execution/test_nets
- random_inputs: caffe2/execution/test_engines
- run_once: caffe2/execution/test_operator
"""
