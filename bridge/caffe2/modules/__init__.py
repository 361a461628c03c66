# SPDX-License-Identifier: Apache-2.0
"""Nets as torch modules."""
