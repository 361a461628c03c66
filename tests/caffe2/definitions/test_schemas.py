# SPDX-License-Identifier: Apache-2.0
"""The schemas of operators."""

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2.definitions.schemas import schema_of
from tests.helpers.workspaces import refused


def test_the_error_of_a_missing_schema_says_where_it_is_declared() -> None:
    with pytest.raises(EnforceNotMet) as raised:
        schema_of("Unlisted")
    refused(raised.value, "'Unlisted'", "register_operator", "inputs=", kind=KeyError)
