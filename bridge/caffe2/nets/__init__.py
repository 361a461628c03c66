# SPDX-License-Identifier: Apache-2.0
"""Nets, execution steps and plans as messages: building, copying and rewriting them."""
