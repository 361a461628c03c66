# SPDX-License-Identifier: Apache-2.0
"""What operators have in common: base classes, helpers for rows, channels and windows."""
