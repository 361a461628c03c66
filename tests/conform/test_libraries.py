# SPDX-License-Identifier: Apache-2.0
"""Real libraries: the bridge is clean, and what is known of others is found again."""

from __future__ import annotations

import pytest

from bridge.conform import check
from bridge.conform.libraries import LIBRARIES, installed, module_of, setup_of, version_of


@pytest.mark.parametrize("name", ["bridge", "caffe2"])
def test_the_bridge_is_clean(name: str) -> None:
    report = check(name)
    report.assert_ok()
    assert report.version
    assert len(report.ok) > 150


def test_numpy_is_found_as_it_is() -> None:
    report = check("numpy", ["producer-values", "consumer-malformed-null-data"])
    assert [one.outcome for one in report.results] == ["ok", "broken"]


def test_torch_is_found_as_it_is() -> None:
    pytest.importorskip("torch")
    known = ["consumer-strides-negative", "consumer-malformed-negative-ndim", "producer-values"]
    report = check("torch", known)
    assert [one.outcome for one in report.results] == ["ok", "crash", "crash"]
    assert all(one.program and "torch.from_dlpack(" in one.program for one in report.broken)


@pytest.mark.parametrize("name", LIBRARIES)
def test_each_library_has_lines_that_compile(name: str) -> None:
    compile(setup_of(name), name, "exec")


def test_numpy_is_installed_with_its_version() -> None:
    numpy = pytest.importorskip("numpy")
    assert installed("numpy")
    assert version_of("numpy") == numpy.__version__


def test_refuses_an_unknown_library() -> None:
    with pytest.raises(ValueError, match="no library has the name 'nothing'; known are bridge"):
        module_of("nothing")
