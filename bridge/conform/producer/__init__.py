# SPDX-License-Identifier: Apache-2.0
"""The cases of producers: a function for each rule, with the rule's name.

Parameters are the parts of the subject that a case needs; one with a default may be missing. A case
that returns is `ok`; `broken` and `skip` end it otherwise; any other exception is what the subject
raised, and breaks the rule. The body becomes a part of a program: no ``return``.
"""

from __future__ import annotations
