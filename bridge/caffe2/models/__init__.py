# SPDX-License-Identifier: Apache-2.0
"""What `brew` and `optimizer` build models of: layers, parameters and how they are updated."""
