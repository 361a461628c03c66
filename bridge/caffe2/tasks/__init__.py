# SPDX-License-Identifier: Apache-2.0
"""Builders of nets, and tasks of several steps, which a session runs."""
