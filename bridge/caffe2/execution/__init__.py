# SPDX-License-Identifier: Apache-2.0
"""Running operators, nets and plans on a table of blobs."""
