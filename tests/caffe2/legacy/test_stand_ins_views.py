# SPDX-License-Identifier: Apache-2.0
"""Old modules see names that NumPy and Python dropped; NumPy itself stays as it is."""

from __future__ import annotations

import importlib
import inspect
import json

import numpy as np
import pytest

from bridge.caffe2.legacy.stand_ins import old_view


def test_views_are_of_numpy_and_inspect_only() -> None:
    assert old_view(json) is json
    old = old_view(np)
    assert old is not np and old is old_view(np) and old.__name__ == "numpy"
    assert (old.bool, old.float, old.object) == (bool, float, object)
    assert old.float_ is np.float64 and old.Inf == np.inf and old.asscalar(np.ones(1)) == 1.0
    assert old.array is np.array and old.random is np.random
    assert old.sum(x for x in (1, 2)) == 3 and old.sum(np.ones((2, 3)), axis=1).tolist() == [3, 3]
    assert "asscalar" in dir(old) and "array" in dir(old)
    assert not hasattr(np, "asscalar")
    with pytest.raises(AttributeError, match="nothing"):
        old.nothing  # noqa: B018


def test_getargspec_gives_the_signature() -> None:
    def function(a: int, b: int = 2, *c: int, **d: int) -> None: ...

    spec = old_view(inspect).getargspec(function)
    assert spec == (["a", "b"], "c", "d", (2,)) and spec.keywords == "d"
    assert old_view(inspect).isfunction is inspect.isfunction


def test_interp2d_interpolates_a_grid() -> None:
    scipy = pytest.importorskip("scipy")
    importlib.import_module("scipy.interpolate")
    old = old_view(scipy).interpolate
    x, y = np.arange(5.0), np.arange(4.0)
    values = x[None, :] ** 2 + 3 * y[:, None]
    function = old.interp2d(x, y, values, kind="cubic")
    expected = np.array([[0.25 + 3, 2.25 + 3]])
    np.testing.assert_allclose(function([0.5, 1.5], [1.0]), expected, rtol=1e-6)
    with pytest.raises(NotImplementedError, match="grid"):
        old.interp2d(x, x, values[0])


def test_networkx_sorts_and_names_as_before() -> None:
    networkx = pytest.importorskip("networkx")
    old = old_view(networkx)
    graph = old.DiGraph()
    graph.add_edges_from([(0, 1), (1, 3), (2, 3), (4, 5)])
    graph.node[3]["height"] = 2
    assert graph.nodes[3] == {"height": 2} == graph.copy().node[3]
    assert list(old.topological_sort(graph)) == [4, 5, 2, 0, 1, 3]
    graph.add_edge(3, 0)
    with pytest.raises(networkx.NetworkXUnfeasible, match="cycle"):
        list(old.topological_sort(graph))
    assert not hasattr(networkx.DiGraph(), "node")
