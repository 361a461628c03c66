# SPDX-License-Identifier: Apache-2.0
"""Automatic gradients of nets."""
