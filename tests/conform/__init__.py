# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.conform`, with subjects in plain Python, planted faults and real libraries.

- rule, rules_producer, rules_consumer, rules_table: test_rules
- cases, runner: test_checking_faults
- folding: test_trimming
- exchanges, processes, worker, loading: test_pairs, test_libraries
"""
