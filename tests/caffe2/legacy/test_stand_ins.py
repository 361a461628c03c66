# SPDX-License-Identifier: Apache-2.0
"""The stand-ins have what the libraries give Caffe2's modules."""

from __future__ import annotations

import io
import unittest.mock
import urllib.parse

import pytest

from bridge.caffe2.legacy.stand_ins import stand_in


def test_stand_ins_have_the_names_and_modules_of_six() -> None:
    six = stand_in("six", ())
    assert six is not None and six.StringIO is io.StringIO
    assert six.moves.urllib.parse is urllib.parse
    assert stand_in("six.moves", ("range",)) is six.moves
    assert stand_in("six.moves.urllib", None) is six
    assert stand_in("mock", ("Mock",)) is stand_in("mock", None) is unittest.mock
    assert stand_in("torch", ()) is None and stand_in("six.nothing", ("x",)) is None
    with pytest.raises(AttributeError, match="pip install six"):
        six.nothing  # noqa: B018


def test_functions_of_future_and_past_do_as_the_libraries() -> None:
    future, past = stand_in("future.utils", ("x",)), stand_in("past.builtins", ("x",))
    assert future is not None and past is not None
    assert future.lmap(str, [1]) == ["1"] and future.lzip([1], [2]) == [(1, 2)]
    assert future.bytes_to_native_str(b"a") == "a" and future.native_str_to_bytes("a") == b"a"
    assert past.range(2) == [0, 1] and past.map(str, [1]) == ["1"]
    with pytest.raises(ValueError, match="one") as info:
        future.raise_from(ValueError("one"), KeyError("two"))
    assert isinstance(info.value.__cause__, KeyError)
    with pytest.raises(ValueError, match="three"):
        future.reraise(ValueError, ValueError("three"), None)
