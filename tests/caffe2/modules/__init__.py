# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.modules`; the modules whose tests have another name::

- *: test_nets_as_modules
"""
