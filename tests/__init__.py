# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge`; the modules whose tests have another name::

- __main__: shell/test_main
- _version: test_docstrings
- annotation, lazy: test_import
- library_export: libraries/test_libraries
- python_values, single: test_front
- typing: test_docstrings

- *: test_architecture, test_caffe2_checkpoint, test_docstrings, test_errors, test_examples,
  test_import, test_mirror, test_out_of_memory, test_readme, test_readme_table, test_threads
"""
