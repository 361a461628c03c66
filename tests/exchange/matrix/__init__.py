# SPDX-License-Identifier: Apache-2.0
"""The matrix of hard cases: sources of every library, by every route, against one expectation."""
