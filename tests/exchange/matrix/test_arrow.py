# SPDX-License-Identifier: Apache-2.0
"""Arrow's arrays, tensors, buffers and tables, by every route."""

from __future__ import annotations

import pytest

from tests.exchange.matrix.case import Case
from tests.exchange.matrix.routes import ROUTES, Route, check_feed, check_route

pytest.importorskip("pyarrow")

from tests.exchange.matrix.sources_arrow import CASES


@pytest.mark.parametrize("route", ROUTES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_route_takes_an_object_of_arrow_or_refuses_it(case: Case, route: Route) -> None:
    check_route(case, route)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_feed_blob_takes_an_object_of_arrow_or_refuses_it(case: Case) -> None:
    check_feed(case)
