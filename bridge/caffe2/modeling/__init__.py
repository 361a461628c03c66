# SPDX-License-Identifier: Apache-2.0
"""Models under construction: nets with parameters, and how these are initialized and shared."""
