# SPDX-License-Identifier: Apache-2.0
"""What the real Caffe2 did, recorded, and the same asked of the bridge."""

import pytest

pytest.register_assert_rewrite("tests.conformance.observer")
