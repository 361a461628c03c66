# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.shell`; the modules whose tests have another name::

- diagnosis, probe: test_doctor
- text_tables, usage_errors: test_main
"""
