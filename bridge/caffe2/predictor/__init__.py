# SPDX-License-Identifier: Apache-2.0
"""Nets and parameters as files that run without the code that made them."""
