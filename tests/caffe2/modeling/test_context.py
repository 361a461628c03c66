# SPDX-License-Identifier: Apache-2.0
"""Context managers whose innermost instance is found by its class."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2.modeling.context import DefaultManaged, Managed


class Base(Managed):
    pass


class Derived(Base):
    pass


class Created(DefaultManaged):
    pass


def test_the_innermost_instance_is_current() -> None:
    with Base() as outer:
        assert Base.current() is outer
        with Derived() as inner:
            assert Base.current() is inner
            assert Derived.current() is inner
        assert Base.current() is outer
        assert Derived.current(required=False) is None


def test_no_instance_is_an_error_unless_one_can_be_created() -> None:
    with pytest.raises(EnforceNotMet, match="No Base is active") as error:
        Base.current()
    assert isinstance(error.value, AssertionError)
    assert isinstance(Created.current(), Created)
    assert Created.current() is Created.current()


def test_a_given_value_goes_before() -> None:
    given = Derived()
    assert Base.current(given) is given
    with pytest.raises(EnforceNotMet, match="Expected a Derived, not a Base"):
        Derived.current(Base())


def test_each_thread_has_its_own() -> None:
    found: list[Any] = []
    with Base():
        thread = threading.Thread(target=lambda: found.append(Base.current(required=False)))
        thread.start()
        thread.join()
    assert found == [None]


def test_an_instance_decorates_a_function() -> None:
    context = Base()

    @context
    def current() -> Any:
        return Base.current()

    assert current() is context
    assert Base.current(required=False) is None


def test_contexts_are_left_in_order() -> None:
    outer, inner = Base(), Base()
    outer.__enter__()
    inner.__enter__()
    with pytest.raises(EnforceNotMet, match="not the innermost"):
        outer.__exit__()
    inner.__exit__()
    outer.__exit__()
