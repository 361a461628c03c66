# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.conform.producer`: clean subjects, and a planted fault for each kind.

- capsules, deleters, lifetimes, arguments, flags, devices, types, layouts, tables:
  conform/test_checking_faults, conform/test_checking
"""
