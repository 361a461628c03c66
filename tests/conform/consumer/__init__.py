# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.conform.consumer`: clean subjects, and a planted fault for each kind.

- capsules, deleters, lifetimes, arguments, flags, types, layouts, malformed, tables:
  conform/test_checking_faults, conform/test_checking
"""
