# SPDX-License-Identifier: Apache-2.0
"""What is to be run: operators, nets and plans as messages, and the objects that make them."""
