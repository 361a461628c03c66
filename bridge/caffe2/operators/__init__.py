# SPDX-License-Identifier: Apache-2.0
"""The built-in operators, computed by torch on the memory of the blobs: a module for each group.

`base` is what they have in common, `base.torch_operator` first of all; the other packages part them
by what they do. Every module in them is imported when the first operator is looked up that nobody
registered, and registers its operators then; none but those of `base` is imported before. torch
itself is loaded when the first of them runs.
"""
