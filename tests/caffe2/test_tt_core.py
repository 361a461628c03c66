# SPDX-License-Identifier: Apache-2.0
"""Weights as tensor trains; the numbers are those of the real Caffe2."""

from __future__ import annotations

import numpy as np
import pytest

from bridge.c10 import EnforceNotMet
from bridge.caffe2 import tt_core

INITIAL = """-0.004834239 0.005439907 -0.02663236 0.003907519 -0.001200923 -0.02626928 0.009961861
0.00991952 -0.01437534 0.02490347 0.09103427 0.01028979 0.01802195 -0.03030897"""
DECOMPOSED = """-8.446283 5.074496 -67.10979 8.603312 -187.8486 -3.30174 -0.3285339 -0.5327007
-0.6655738 -0.001416658 -0.4240094 -0.6546078 -0.4272529 0.611935"""


def test_initial_cores_equal_the_cores_of_caffe2() -> None:
    cores = tt_core.init_tt_cores([2, 3], [2, 1], [1, 2, 1], seed=5)
    assert cores.dtype == np.float32
    np.testing.assert_allclose(cores, np.array(INITIAL.split(), float), rtol=1e-5)


def test_a_matrix_is_decomposed() -> None:
    weight = np.arange(12, dtype=np.float32).reshape(6, 2) ** 2
    cores = tt_core.matrix_to_tt(weight, [2, 3], [2, 1], [1, 2, 1])
    assert cores.dtype == np.float32
    # The signs of singular vectors are LAPACK's choice.
    expected = np.array(DECOMPOSED.split(), float)
    np.testing.assert_allclose(abs(cores), abs(expected), rtol=1e-3, atol=1e-5)
    assert tt_core.fc_net_to_tt_net(None) is None


def test_sizes_that_do_not_fit_are_refused() -> None:
    weight = np.zeros((6, 2), np.float32)
    for sizes in (
        ([2, 3], [2], [1, 2, 1]),
        ([2, 3], [2, 1], [1, 2]),
        ([2, 2], [2, 1], [1, 2, 1]),
        ([2, 3], [2, 2], [1, 2, 1]),
        ([2, 3], [2, 1], [1, 9, 1]),
    ):
        with pytest.raises(EnforceNotMet) as error:
            tt_core.matrix_to_tt(weight, *sizes)
        assert isinstance(error.value, AssertionError)
    with pytest.raises(EnforceNotMet, match="so 3 ranks, not 2"):
        tt_core.tt_svd(weight, np.array([6, 2]), [1, 2])
