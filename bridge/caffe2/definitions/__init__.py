# SPDX-License-Identifier: Apache-2.0
"""Operators as messages: arguments, names, scopes, schemas."""
