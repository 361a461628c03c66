# SPDX-License-Identifier: Apache-2.0
"""Operators as messages: their types, arguments, blob names, scopes and schemas."""
