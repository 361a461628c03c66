# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.conform`, with subjects in plain Python, faults planted, and real libraries."""
