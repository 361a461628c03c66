# SPDX-License-Identifier: Apache-2.0
"""Libraries of operators that are loaded, or refused, when operators are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import core, lazy_dyndep


@pytest.fixture(autouse=True)
def _no_handler() -> Iterator[None]:
    yield
    lazy_dyndep.SetErrorHandler(None)


@pytest.fixture
def library(tmp_path: Path) -> str:
    path = tmp_path / "ops.so"
    path.write_bytes(b"")
    return str(path)


def test_a_library_is_refused_when_operators_are_asked_for(library: str) -> None:
    lazy_dyndep.RegisterOpsLibrary(library)
    core.RefreshRegisteredOperators(trigger_lazy=False)
    with pytest.raises(EnforceNotMet, match="library of operators in C"):
        core.RefreshRegisteredOperators()
    core.RefreshRegisteredOperators()  # it was tried
    assert lazy_dyndep.GetImportedOpsLibraries() == set()


def test_a_handler_gets_the_error(library: str) -> None:
    errors: list[BaseException] = []
    lazy_dyndep.SetErrorHandler(errors.append)
    lazy_dyndep.RegisterOpsLibrary(library)
    assert not errors
    assert lazy_dyndep.GetImportedOpsLibraries() == set()
    assert [type(error) for error in errors] == [EnforceNotMet]


def test_what_is_no_file_is_ignored(capsys: pytest.CaptureFixture[str]) -> None:
    lazy_dyndep.RegisterOpsLibrary("@/caffe2/caffe2/distributed:file_store_handler_ops")
    assert capsys.readouterr().out.startswith("Ignoring @/caffe2")
    core.RefreshRegisteredOperators()
