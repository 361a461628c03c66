# SPDX-License-Identifier: Apache-2.0
"""torch's own table of operations (OpInfo), run on at.Tensors and compared with plain tensors.

`routes.py` says how an operation is called, `memory.py` on what memory, `compare.py` what is equal;
`run.py` runs any part of the table from the command line, and `test_table.py` a selection.
"""
