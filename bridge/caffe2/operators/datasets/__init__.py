# SPDX-License-Identifier: Apache-2.0
"""Records read and kept: columns, cursors, queues, databases."""
