# SPDX-License-Identifier: Apache-2.0
"""Variables of Keras with torch as its backend."""

from __future__ import annotations

import pytest

from tests.helpers.isolate import run_python


def test_variables_on_torch_are_shared_or_name_detach() -> None:
    pytest.importorskip("keras")
    run_python(
        """
import os
os.environ["KERAS_BACKEND"] = "torch"
import bridge, keras, numpy, warnings
tracked = keras.Variable(numpy.ones(2, "float32"))
for call in (bridge.from_dlpack, bridge.to_torch, bridge.to_numpy):
    try:
        call(tracked)
    except BufferError as error:
        assert "v.value.detach()" in str(error), error
    else:
        raise AssertionError(call)
assert bridge.shares_memory(bridge.from_dlpack(tracked.value.detach()), tracked.value)
free = keras.Variable(numpy.ones(2, "float32"), trainable=False)
assert bridge.shares_memory(bridge.from_dlpack(free), free.value)
"""
    )
