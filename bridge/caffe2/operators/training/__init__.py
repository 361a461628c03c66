# SPDX-License-Identifier: Apache-2.0
"""Losses, measures of predictions, learning rates, and optimizer steps."""
