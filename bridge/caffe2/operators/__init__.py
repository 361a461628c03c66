# SPDX-License-Identifier: Apache-2.0
"""The built-in operators, a module for each group, computed by torch on the memory of the blobs.

Every module in this package is imported when the first operator is looked up that nobody
registered, and registers its operators then; none is imported before. `torch_operator` is what they
have in common. torch itself is loaded when the first of them runs.
"""
