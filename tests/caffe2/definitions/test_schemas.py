# SPDX-License-Identifier: Apache-2.0
"""The schemas of operators."""

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2.definitions.schemas import schema_of
from tests.helpers.workspaces import refused


def test_the_error_of_a_missing_row_names_the_tables() -> None:
    with pytest.raises(EnforceNotMet) as raised:
        schema_of("Unlisted")
    refused(raised.value, "'Unlisted'", "schema_table.py", "Unlisted:1:1:0>0", kind=KeyError)
