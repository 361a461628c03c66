# SPDX-License-Identifier: Apache-2.0
"""Workspaces, and the functions that act on the current one."""
