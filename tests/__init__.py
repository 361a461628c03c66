# SPDX-License-Identifier: Apache-2.0
"""Tests of `bridge`; the modules whose tests have another name::

- __main__: shell/test_main
- _version: test_docstrings
- annotation, lazy: test_import
- python_values: test_front
- single: test_front, libraries/test_libraries
- typing: test_docstrings

- *: test_architecture, test_caffe2_checkpoint, test_docstrings, test_errors, test_examples,
  test_import, test_mirror, test_out_of_memory, test_readme, test_readme_table, test_threads
"""
