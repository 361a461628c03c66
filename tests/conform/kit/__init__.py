# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.conform.kit`: clean subjects, and a planted fault for each kind.

- verdict, structures, given, export, lying, source, short, table, table_source:
  conform/test_checking_faults, conform/test_checking
"""
