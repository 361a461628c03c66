# SPDX-License-Identifier: Apache-2.0
"""The cases of consumers: a function for each rule, with the rule's name.

They are written as the cases of producers (`bridge.conform.producer`), and get capsules of the kit.
"""

from __future__ import annotations
