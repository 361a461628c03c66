# SPDX-License-Identifier: Apache-2.0
"""`caffe2.FLAGS` takes the values that Caffe2's flags have, and no others."""

from typing import Any

import pytest

from bridge import c10, caffe2


@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("caffe2_keep_on_shrink", "yes", TypeError),
        ("caffe2_keep_on_shrink", None, TypeError),
        ("caffe2_keep_on_shrink", 2, TypeError),
        ("caffe2_max_keep_on_shrink_memory", True, TypeError),
        ("caffe2_max_keep_on_shrink_memory", 1.0, TypeError),
        ("caffe2_max_keep_on_shrink_memory", 2**63, ValueError),
        ("caffe2_max_keep_on_shrink_memory", -(2**63) - 1, ValueError),
    ],
)
def test_a_wrong_value_is_refused(name: str, value: Any, error: type[Exception]) -> None:
    before = getattr(caffe2.FLAGS, name)
    with pytest.raises(c10.EnforceNotMet, match=name) as caught:
        setattr(caffe2.FLAGS, name, value)
    assert isinstance(caught.value, error)
    assert getattr(caffe2.FLAGS, name) == before


def test_unknown_flags_are_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        caffe2.FLAGS.caffe2_keep_on_shrnk = True
