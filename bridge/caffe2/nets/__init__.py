# SPDX-License-Identifier: Apache-2.0
"""Nets and plans as messages."""
