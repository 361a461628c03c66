# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge.integrations`, with the packages themselves."""
