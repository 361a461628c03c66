# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.caffe2.legacy`; the modules whose tests have another name::

- loader, messages: caffe2/test_install_legacy
"""
