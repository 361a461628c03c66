# SPDX-License-Identifier: Apache-2.0
"""torch tensors, by every route."""

from __future__ import annotations

import pytest

from tests.exchange.matrix.case import Case
from tests.exchange.matrix.routes import ROUTES, Route, check_feed, check_route
from tests.exchange.matrix.sources_torch import CASES


@pytest.mark.filterwarnings("ignore:ComplexHalf support is experimental")
@pytest.mark.parametrize("route", ROUTES, ids=str)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_each_route_takes_a_torch_tensor_or_refuses_it(case: Case, route: Route) -> None:
    check_route(case, route)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_feed_blob_takes_a_torch_tensor_or_refuses_it(case: Case) -> None:
    check_feed(case)
