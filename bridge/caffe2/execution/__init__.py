# SPDX-License-Identifier: Apache-2.0
"""How it is run: operators, nets and plans at work on a workspace."""
