# SPDX-License-Identifier: Apache-2.0
"""The built-in operators, a module for each group of them.

Every module in this package is imported when the first operator is looked up that nobody
registered, and registers its operators then; none is imported before.
"""
