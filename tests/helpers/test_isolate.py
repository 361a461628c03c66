# SPDX-License-Identifier: Apache-2.0
"""The helper that runs tests in processes of their own sees every way in which they can end."""

import ctypes
import os
import threading
import warnings

import pytest
from hypothesis import settings

from tests.helpers.isolate import isolated, run_python


@isolated
def passes(value: int, caller: int) -> None:
    assert value == 3
    assert os.getpid() != caller


@isolated
def fails(value: int) -> None:
    assert value == 4, "not four"


@isolated
def crashes() -> None:
    ctypes.string_at(0)


@isolated
def exits() -> None:
    os._exit(3)


@isolated
def skips() -> None:
    pytest.skip("nothing to do")


@isolated
def warns() -> None:
    warnings.warn("careful", UserWarning, stacklevel=1)


@isolated
def raises_where_nobody_listens() -> None:
    class Dying:
        def __del__(self) -> None:
            raise ValueError("in __del__")

    Dying()


@isolated
def starts_a_thread() -> None:
    seen: list[int] = []
    thread = threading.Thread(target=lambda: seen.append(1))
    thread.start()
    thread.join()
    assert seen == [1]


@isolated
def draws_as(derandomize: bool, deadline: None) -> None:
    assert (settings().derandomize, settings().deadline) == (derandomize, deadline)


def test_hypothesis_draws_as_it_does_outside() -> None:
    draws_as(derandomize=settings().derandomize, deadline=settings().deadline)


def test_a_test_passes_with_arguments_and_threads() -> None:
    passes(value=3, caller=os.getpid())
    starts_a_thread()


def test_a_failed_assertion_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="not four"):
        fails(value=3)


def test_a_crash_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="SIGSEGV"):
        crashes()
    passes(value=3, caller=os.getpid())


def test_an_early_exit_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="exit status 3"):
        exits()


def test_a_skip_skips_the_test() -> None:
    with pytest.raises(pytest.skip.Exception, match="nothing to do"):
        skips()


def test_a_warning_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="careful"):
        warns()


def test_an_unraisable_error_fails_the_test() -> None:
    with pytest.raises(pytest.fail.Exception, match="in __del__"):
        raises_where_nobody_listens()


def test_run_python_returns_the_output_or_fails() -> None:
    assert run_python("print(6 * 7)") == "42\n"
    for code in ("import sys; sys.exit(2)", "import sys; print('bad', file=sys.stderr)", "1 / 0"):
        with pytest.raises(pytest.fail.Exception):
            run_python(code)
