# SPDX-License-Identifier: Apache-2.0
"""Workspaces, and functions on the current one."""
