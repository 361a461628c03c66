# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.predictor`; the modules whose tests have another name::

- mobile_exporter: caffe2/definitions/test_refusals
- predictor_py_utils: test_predictor_exporter
"""
