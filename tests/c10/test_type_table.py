# SPDX-License-Identifier: Apache-2.0
"""`TypeTable`: numbers by element type."""

import pytest

from bridge import c10
from bridge.c10.type_table import TypeTable


def test_it_is_a_mapping_in_the_order_given() -> None:
    table = TypeTable((c10.float64, 2), (c10.float32, 1))
    assert list(table.items()) == [(c10.float64, 2), (c10.float32, 1)]
    assert (table[c10.float32], len(table), table.get(c10.int8, 7)) == (1, 2, 7)
    assert c10.float64 in table
    with pytest.raises(KeyError):
        table[c10.string]
